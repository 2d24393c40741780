// Where the boxes of the generation tree stand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { branchesOf, EDGE, placed, shareOf } from "../../gptviz/components/generation_tree/layout.js";

const branch = (w, h, children = [], more = {}) => ({ run: { element: { offsetWidth: w, offsetHeight: h } }, children, ...more });

test("no box stands on another, and all on the stage", () => {
  const leaf = () => branch(50, 40);
  const tree = branch(100, 30, [branch(60, 20, [leaf(), leaf(), leaf()]), branch(80, 90, [leaf(), branch(10, 10, [leaf()])])]);
  const { right, bottom } = placed(tree, null);
  const boxes = [...branchesOf(tree)];
  for (const a of boxes) {
    assert.ok(a.x >= EDGE && a.y >= EDGE && a.x + a.w <= right && a.y + a.h <= bottom);
    for (const b of boxes) {
      const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(a === b || apart);
    }
  }
});

test("the current path runs straight where there is room", () => {
  const last = branch(50, 40, [], { strong: true, current: true });
  const tree = branch(100, 40, [last, branch(50, 40), branch(50, 40)], { strong: true });
  const { fan } = placed(tree, { width: 30, height: 60 });
  assert.equal(tree.y + tree.h / 2, last.y + last.h / 2);
  assert.equal(last.y + last.h / 2, fan.y + 30);
});

test("what may come next stands at the top, whatever goes on from there and beside it", () => {
  const path = (children) => branch(100, 40, [branch(70, 200, children, { strong: true, current: true }), branch(90, 300)]);
  const places = [[], [branch(50, 40)], [branch(50, 400, [branch(10, 10)]), branch(50, 40)]].map((children) => {
    const { x, y } = placed(path(children), { width: 30, height: 60 }).fan;
    return { x, y };
  });
  assert.equal(places[0].y, EDGE);
  assert.deepEqual(places[1], places[0]);
  assert.deepEqual(places[2], places[0]);
});

test("those who want little get it, the others share the rest", () => {
  assert.equal(shareOf([10, 20, 30], 100), Infinity);
  assert.equal(shareOf([10, 90, 90], 100), 45);
  assert.equal(shareOf([50, 50], 100), 50);
});
