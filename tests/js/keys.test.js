// Where keys lead within a view.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ACROSS, along, DOWN, inNextLine, onKeys, walked } from "../../gptviz/components/kit/keys.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

test("arrows walk from cell to cell and stop at the edge, Home and End go to the ends of a row, and no other key walks", () => {
  const walk = (keys) => keys.reduce((at, key) => walked(at, key, 3, 4), { row: 1, column: 0 });
  assert.deepEqual(walk(["ArrowDown", "ArrowRight"]), { row: 2, column: 1 });
  assert.deepEqual(walk(["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"]), { row: 2, column: 2 });
  assert.deepEqual(walk(["ArrowUp", "ArrowUp", "ArrowLeft"]), { row: 0, column: 0 });
  assert.deepEqual(walk(["End"]), { row: 1, column: 3 });
  assert.deepEqual(walk(["End", "End", "ArrowDown", "ArrowLeft", "Home"]), { row: 2, column: 0 });
  for (const key of ["Enter", "constructor", "a"]) assert.equal(walked({ row: 1, column: 1 }, key, 3, 3), null);
});

test("a walk leads to cells that are there alone: the nearest on that side, or the first and the last of the row", () => {
  const rows = ["#.##", ".#..", "##.#"];
  const isThere = ({ row, column }) => rows[row][column] === "#";
  for (let row = 0; row < 3; row++) {
    for (let column = 0; column < 4; column++) {
      if (!isThere({ row, column })) continue;
      for (const key of ARROWS) {
        const [down, right] = [
          key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0,
          key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0,
        ];
        const on = [1, 2, 3].map((far) => ({ row: row + far * down, column: column + far * right }));
        const there = on.filter((at) => rows[at.row]?.[at.column] === "#");
        assert.deepEqual(
          walked({ row, column }, key, 3, 4, isThere),
          there[0] ?? { row, column },
          `${key} from ${row}, ${column}`,
        );
      }
      assert.equal(walked({ row, column }, "Home", 3, 4, isThere).column, rows[row].indexOf("#"));
      assert.equal(walked({ row, column }, "End", 3, 4, isThere).column, rows[row].lastIndexOf("#"));
    }
  }
});

test("a list is walked by its own keys, to its ends at most", () => {
  const both = { ...ACROSS, ...DOWN };
  assert.deepEqual(
    ["ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight", "Home", "End"].map((key) => along(key, 2, 5, both)),
    [1, 1, 3, 3, 0, 4],
  );
  assert.deepEqual(
    ["PageUp", "PageDown", "ArrowUp", "ArrowDown"].map((key) => along(key, 2, 5, { ...DOWN, PageUp: -9, PageDown: 9 })),
    [0, 4, 1, 3],
  );
  for (const key of [...Object.keys(DOWN), "Enter", "constructor"]) assert.equal(along(key, 2, 5, ACROSS), null, key);
  for (const key of ["Home", "End", "ArrowLeft"]) assert.equal(along(key, 0, 0, ACROSS), null, "an empty list leads nowhere");
});

test("the next line is where the nearest of another height stands", () => {
  const width = 10,
    height = 10;
  // Three lines: of 3, of 1 and of 4.
  const places = [...[0, 20, 40].map((left) => [left, 0]), [90, 30], ...[0, 18, 60, 80].map((left) => [left, 62])];
  const boxOf = (i) => ({ left: places[i][0], top: places[i][1], width, height });
  const go = (i, way) => inNextLine(i, way, places.length, boxOf);
  assert.deepEqual(
    [0, 1, 2].map((i) => go(i, 1)),
    [3, 3, 3],
  );
  assert.deepEqual([go(3, -1), go(3, 1), go(5, -1)], [2, 7, 3]);
  assert.deepEqual([go(1, -1), go(6, 1)], [null, null], "there is no line above the first and below the last");
});

/** What happens to a key that is pressed where only "a" is taken. */
function pressed(event) {
  let listener = () => {};
  const done = [];
  onKeys({ addEventListener: (_, act) => (listener = act) }, ({ key }) => key === "a");
  listener({ ...event, preventDefault: () => done.push("prevented"), stopPropagation: () => done.push("stopped") });
  return done;
}

test("the page sees no key that a view takes, nor one that presses a button, and all that belong to the browser", () => {
  assert.deepEqual(pressed({ key: "a" }), ["prevented", "stopped"]);
  for (const key of ["Enter", " "]) assert.deepEqual(pressed({ key }), ["stopped"]);
  assert.deepEqual(pressed({ key: "b" }), []);
  for (const held of ["ctrlKey", "metaKey", "altKey"]) assert.deepEqual(pressed({ key: "a", [held]: true }), []);
});
