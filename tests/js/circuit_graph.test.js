import assert from "node:assert/strict";
import { test } from "node:test";
import { curve, layout, NODE, neighbour, rowTitle, thickness } from "../../gptviz/components/circuit_graph/layout.js";

/** @typedef {import("../../gptviz/components/circuit_graph/layout.js").Node} Node */

/** @param {Partial<Node>} given @returns {Node} */
const node = (given) => ({
  name: "",
  part: "attention",
  title: "",
  place: 0,
  row: 2,
  index: null,
  block: null,
  value: 1,
  ...given,
});
const LOGIT = node({ part: "logit", place: 7, row: -1 });
const GRAPH = [
  LOGIT,
  node({ place: 7, row: 4, block: 1, index: 2 }),
  node({ place: 7, row: 4, block: 1, index: 0 }),
  node({ place: 2, row: 2, block: 0, index: 1 }),
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
      assert.ok(i === j || one.y !== other.y || Math.abs(one.x - other.x) >= NODE.width);
    });
  });
});

/** Many positions, some with more heads in a block than stand in one line. */
const WIDE = [
  LOGIT,
  ...Array.from({ length: 14 }, (_, i) => node({ part: "embed", place: 2 * i, row: 1 })),
  ...Array.from({ length: 7 }, (_, i) => node({ place: 7, row: 2, block: 0, index: i })),
  ...Array.from({ length: 4 }, (_, i) => node({ place: 2, row: 4, block: 1, index: i })),
  node({ part: "mlp", place: 7, row: 3, block: 0 }),
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
        if (room >= 240) assert.ok(one.x + one.width <= room + 0.01 || one.x >= room - 0.01, `${one.x} in ${room}`);
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
  assert.equal(rowTitle(node({ part: "mlp", block: 3 })), "block 3, MLP");
});

test("an edge runs from the top of its source to the way into its target that its kind says", () => {
  const placed = layout(GRAPH);
  const ends = (/** @type {"query" | "key" | "value"} */ kind) =>
    (curve(placed, { from: 4, to: 1, kind, value: 1, share: 1 }).match(/-?[\d.]+/g) ?? []).map(Number);
  const [query, key, value] = [ends("query"), ends("key"), ends("value")];
  assert.deepEqual(query.slice(0, 2), [placed.nodes[4].x + NODE.width / 2, placed.nodes[4].y]);
  assert.ok(query[6] < key[6] && key[6] < value[6]);
  assert.equal(query[7], placed.nodes[1].y + NODE.height);
});

test("an edge is as wide as what it adds, whatever its sign", () => {
  assert.equal(thickness(-2, 4), thickness(2, 4));
  assert.ok(thickness(4, 4) > thickness(2, 4));
  assert.equal(thickness(0, 0), 1);
});

test("an arrow key leads to the nearest node on its side, or nowhere", () => {
  const placed = layout(GRAPH);
  assert.equal(neighbour(placed, 0, "ArrowDown"), 1);
  assert.equal(neighbour(placed, 2, "ArrowRight"), 1);
  assert.equal(neighbour(placed, 5, "ArrowLeft"), 4);
  assert.equal(neighbour(placed, 0, "ArrowUp"), 0);
  for (let i = 1; i < GRAPH.length; i++) assert.notEqual(neighbour(placed, i, "ArrowUp"), i, "every node has a way up");
});
