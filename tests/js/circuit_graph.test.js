import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, nameOf } from "../../gptviz/components/circuit_graph/groups.js";
import {
  bend,
  curve,
  LABELS,
  layout,
  NODE,
  neighbour,
  placeOfNumber,
  rowTitle,
  thickness,
} from "../../gptviz/components/circuit_graph/layout.js";

/** @typedef {import("../../gptviz/components/circuit_graph/layout.js").Node} Node */

/** @param {Partial<Node>} given @returns {Node} */
const node = (given) => ({
  name: "",
  part: "attention",
  title: "",
  place: 0,
  row: 2,
  index: null,
  value: 1,
  ...given,
});
const LOGIT = node({ part: "logit", place: 7, row: -1 });
const GRAPH = [
  LOGIT,
  node({ place: 7, row: 4, index: 2 }),
  node({ place: 7, row: 4, index: 0 }),
  node({ place: 2, row: 2, index: 1 }),
  node({ part: "embed", place: 1, row: 1 }),
  node({ part: "embed", place: 7, row: 1 }),
  node({ part: "positions", place: 1, row: 0 }),
];

test("no two nodes overlap, and each is within its column and the drawing", () => {
  const { nodes, columns, width, height } = layout(GRAPH);
  nodes.forEach((one, i) => {
    const column = /** @type {any} */ (columns.find(({ place }) => place === GRAPH[i].place));
    assert.ok(one.x >= column.left && one.x + one.width <= column.left + column.width);
    assert.ok(one.x + one.width <= width && one.y + NODE.height <= height);
    nodes.forEach((other, j) => {
      assert.ok(i === j || one.y !== other.y || Math.abs(one.x - other.x) >= one.width);
    });
  });
});

/** Many positions, some with more heads in a block than stand in one line. */
const WIDE = [
  LOGIT,
  ...Array.from({ length: 14 }, (_, i) => node({ part: "embed", place: 2 * i, row: 1 })),
  ...Array.from({ length: 7 }, (_, i) => node({ place: 7, row: 2, index: i })),
  ...Array.from({ length: 4 }, (_, i) => node({ place: 2, row: 4, index: i })),
  node({ part: "mlp", place: 7, row: 3 }),
];

for (const room of [0, 240, 356, 500, 820, 1400]) {
  for (const [name, graph] of Object.entries({ GRAPH, WIDE })) {
    test(`in ${room} pixels the edge of the frame cuts no node of ${name}, and nothing overlaps`, () => {
      const { nodes, columns, rows, width, height } = layout(graph, room);
      const wide = layout(graph);
      assert.ok(wide.width > room || width === wide.width, "where there is room it is as it is without bounds");
      nodes.forEach((one, i) => {
        const column = /** @type {any} */ (columns.find(({ place }) => place === graph[i].place));
        assert.ok(one.x >= column.left - 0.01 && one.x + one.width <= column.left + column.width + 0.01);
        // Scrolled to the right, what is seen of the graph begins behind the names of the layers.
        const from = width - room + LABELS;
        const isWhole = one.x >= from - 0.01 || one.x + one.width <= from + 0.01;
        if (room >= 240 && width > room) assert.ok(isWhole, `${one.x} in ${room}`);
        assert.ok(rows.some(({ y, height: high }) => one.y >= y && one.y + NODE.height <= y + high));
        nodes.forEach((other, j) => {
          const isApart = Math.abs(one.x - other.x) >= one.width || Math.abs(one.y - other.y) >= NODE.height;
          assert.ok(i === j || isApart, `${i} and ${j}`);
        });
      });
      rows.forEach(({ y, height: high }, i) => {
        assert.ok(y + high < (rows[i + 1]?.y ?? height));
      });
    });
  }
}

test("positions stand in their order, what is left out between them is marked, and layers go upwards", () => {
  const { columns, rows, nodes } = layout(GRAPH);
  assert.deepEqual(
    columns.map(({ place, afterGap }) => [place, afterGap]),
    [
      [1, true],
      [2, false],
      [7, true],
    ],
  );
  assert.deepEqual(
    rows.map(({ title }) => title),
    ["logit", "block 1, heads", "block 0, heads", "tokens", "positions"],
  );
  assert.ok(nodes[0].y < nodes[1].y && nodes[1].y < nodes[3].y && nodes[3].y < nodes[4].y && nodes[4].y < nodes[6].y);
  assert.ok(nodes[2].x < nodes[1].x, "heads of a cell by their number");
  assert.equal(rowTitle(2 + 2 * 3 + 1), "block 3, MLP");
});

test("an edge runs from the top of its source to the way into its target that its kind says", () => {
  const placed = layout(GRAPH);
  const ends = (/** @type {"query" | "key" | "value"} */ kind) =>
    (curve(placed, { from: 4, to: 1, kind, value: 1, share: 1, main: false }).match(/-?[\d.]+/g) ?? []).map(Number);
  const [query, key, value] = [ends("query"), ends("key"), ends("value")];
  assert.deepEqual(query.slice(0, 2), [placed.nodes[4].x + placed.nodes[4].width / 2, placed.nodes[4].y]);
  assert.ok(query[6] < key[6] && key[6] < value[6]);
  assert.equal(query[7], placed.nodes[1].y + NODE.height);
});

test("an edge runs through no box but its own two, and its number stands beside all boxes", () => {
  const tower = Array.from({ length: 6 }, (_, i) => node({ part: "mlp", place: 7, row: 3 + 2 * i }));
  const graph = [LOGIT, ...tower, node({ place: 2, row: 2 }), node({ place: 7, row: 2 })];
  const placed = layout(graph, 500);
  /** @param {number} x @param {number} y */
  const boxesAt = (x, y) =>
    placed.nodes.flatMap((one, i) => (x > one.x && x < one.x + one.width && y > one.y && y < one.y + NODE.height ? [i] : []));
  for (const from of [1, 7, 8]) {
    /** @type {import("../../gptviz/components/circuit_graph/layout.js").Edge} */
    const one = { from, to: 0, kind: "logit", value: 1, share: 1, main: true };
    const [a, b, c, d] = bend(placed, one);
    for (let t = 0; t <= 1; t += 0.05) {
      const [x, y] = /** @type {const} */ (["x", "y"]).map(
        (k) => (1 - t) ** 3 * a[k] + 3 * (1 - t) ** 2 * t * b[k] + 3 * (1 - t) * t ** 2 * c[k] + t ** 3 * d[k],
      );
      assert.deepEqual(
        boxesAt(x, y).filter((i) => i !== from && i !== 0),
        [],
        `from ${from} at ${t}`,
      );
    }
    const { x, y } = placeOfNumber(placed, one, 5, 5);
    assert.deepEqual(boxesAt(x, y), []);
  }
});

test("an edge is as wide as what it adds, whatever its sign", () => {
  assert.equal(thickness(-2, 4), thickness(2, 4));
  assert.ok(thickness(4, 4) > thickness(2, 4));
  assert.equal(thickness(0, 0), 1);
});

test("an arrow key leads to the nearest node on its side, or nowhere; Home and End lead to the ends of its line", () => {
  const placed = layout(GRAPH);
  assert.equal(neighbour(placed, 0, "ArrowDown"), 1);
  assert.equal(neighbour(placed, 2, "ArrowRight"), 1);
  assert.equal(neighbour(placed, 5, "ArrowLeft"), 4);
  assert.equal(neighbour(placed, 0, "ArrowUp"), 0);
  for (let i = 1; i < GRAPH.length; i++) assert.notEqual(neighbour(placed, i, "ArrowUp"), i, "every node has a way up");
  placed.nodes.forEach(({ y }, i) => {
    const line = placed.nodes.filter((other) => other.y === y).map(({ x }) => x);
    const ends = ["Home", "End"].map((key) => placed.nodes[neighbour(placed, i, key)]);
    assert.deepEqual(
      ends.map(({ x }) => x),
      [Math.min(...line), Math.max(...line)],
    );
    assert.ok(ends.every((end) => end.y === y));
  });
  for (const key of ["Enter", "constructor"]) assert.equal(neighbour(placed, 0, key), null);
});

test("a dozen boxes in ten layers stand on one screen, and say what their numbers mean where there is room", () => {
  const dozen = [
    LOGIT,
    ...Array.from({ length: 8 }, (_, i) => node({ place: 5 + (i % 3), row: 2 + i, index: 0 })),
    ...[5, 6, 7].map((place) => node({ part: "embed", place, row: 1 })),
  ];
  const { height, isWide } = layout(dozen, 900);
  assert.ok(height <= 510, `${height}`);
  assert.ok(isWide);
  assert.ok(!layout(dozen, 356).isWide);
});

/** @param {number} from @param {number} to @param {number} value @param {"value" | "key"} [kind] @returns {import("../../gptviz/components/circuit_graph/layout.js").Edge} */
const edge = (from, to, value, kind = "value") => ({ from, to, kind, value, share: 0.1, main: from === 1 });
const NAMED = GRAPH.map((one, i) => ({ ...one, name: `n${i}` }));
const EDGES = [edge(1, 0, 5), edge(2, 0, 3), edge(3, 1, 2), edge(3, 2, -4), edge(3, 1, 7, "key"), edge(4, 3, 1), edge(4, 0, 6)];

test("a group is one node whose edges are the sums of those of its members, by their kinds", () => {
  const { nodes, edges } = grouped(NAMED, EDGES, [{ name: "late", members: ["n1", "n2", "gone"] }]);
  assert.deepEqual(
    nodes.map(({ name }) => name),
    ["n0", "n3", "n4", "n5", "n6", "late"],
  );
  assert.deepEqual(
    edges.map(({ from, to, kind, value }) => [nodes[from].name, nodes[to].name, kind, value]),
    [
      ["late", "n0", "value", 8],
      ["n3", "late", "value", -2],
      ["n3", "late", "key", 7],
      ["n4", "n3", "value", 1],
      ["n4", "n0", "value", 6],
    ],
  );
  const late = nodes[5];
  assert.deepEqual([late.part, late.row, late.place, late.value, late.of], ["group", 4, 7, 8, [1, 2]]);
});

test("what members of a group give to each other is no edge, and counts for nothing that the group gives", () => {
  const { nodes, edges } = grouped(NAMED, EDGES, [{ name: "all", members: ["n0", "n1", "n3", "n4"] }]);
  const all = nodes.findIndex(({ name }) => name === "all");
  assert.ok(
    nodes.some(({ part }) => part === "logit"),
    "the logit is in no group",
  );
  assert.equal(nodes[all].value, 5 - 4 + 6);
  assert.ok(edges.every(({ from, to }) => from !== to));
  const { nodes: same, edges: alike } = grouped(NAMED, EDGES, [{ name: "of another graph", members: ["elsewhere"] }]);
  assert.deepEqual(
    same.map(({ of, ...one }) => one),
    NAMED,
  );
  assert.deepEqual(alike, EDGES);
});

test("a group stands in the address with a name that it can have", () => {
  assert.equal(nameOf("  moves: a; b  "), "moves  a  b");
  assert.equal([...nameOf("𝔸".repeat(30))].length, 24);
});
