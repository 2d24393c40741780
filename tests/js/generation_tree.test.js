// The store of a generation tree, and the walk through it with the keyboard.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mostAttended } from "../../gptviz/components/generation_tree/attention.js";
import { walk } from "../../gptviz/components/generation_tree/keyboard.js";
import { NEXT, Nodes, START } from "../../gptviz/components/generation_tree/nodes.js";

const LABELS = { 5: "a", 6: "b", 7: "c" };

/** A payload of nodes [id, parent, token]; after the prompt of two tokens comes each at its own depth. */
function payload(nodes, current, more = {}) {
  const positions = new Map([[START, 1]]);
  for (const [id, parent] of nodes) positions.set(id, (positions.get(parent) ?? 10) + 1);
  const column = (of) => Float64Array.from(nodes, of);
  const arrays = {
    node: column(([id]) => id),
    parent: column(([, parent]) => parent),
    token: column(([, , token]) => token),
    position: column(([id]) => positions.get(id)),
    logprob: column(() => -1),
    draw_logprob: column(() => -0.5),
    total: column(([id]) => 1 - positions.get(id)),
    candidates: Object.assign(Int32Array.from(nodes.flatMap(([, , token]) => [token, 9, -1])), { shape: [nodes.length, 3] }),
    candidate_p: new Float32Array(6 * nodes.length).fill(0.25),
    how: column((_, i) => i % 2),
  };
  const header = { number: 1, current, labels: { ...LABELS }, prompt: ["x", "y"], prompt_length: 2, heads: [1, 2], ...more };
  return { ...header, how: ["chosen by hand", "temperature 1"], draws: 1, arrays };
}

//   1 - 2 - 3      the current path
//        \\
//         4 - 5
const NODES = [
  [1, START, 5],
  [2, 1, 6],
  [3, 2, 7],
  [4, 2, 5],
  [5, 4, 6],
];
const tree = (current = 3, more = {}) => new Nodes(payload(NODES, current, more));

test("a path leads from the first token to a node", () => {
  const nodes = tree();
  assert.deepEqual(nodes.path, [1, 2, 3]);
  assert.deepEqual(nodes.pathTo(5), [1, 2, 4, 5]);
  assert.deepEqual(nodes.pathTo(START), []);
  assert.equal(nodes.label(4), "a");
  assert.equal(nodes.label(START), "y");
  assert.equal(nodes.lengthAt(5), 4);
  assert.equal(nodes.lengthAt(START), 0);
  assert.throws(() => nodes.node(99), /no node 99/);
});

test("a node tells what it was chosen from", () => {
  const { candidates, how, byHand } = tree().node(1);
  assert.deepEqual(candidates, [
    [5, 0.25, 0.25],
    [9, 0.25, 0.25],
  ]);
  assert.deepEqual([how, byHand], ["chosen by hand", true]);
  assert.deepEqual([tree().node(2).how, tree().node(2).byHand], ["temperature 1", false]);
});

test("a branch ends at a fork, at an end and at the current node", () => {
  const { nodes, end, level, strong, current, children } = tree().outline();
  assert.deepEqual([nodes, end, level, strong, current], [[START, 1, 2], 2, 1, true, false]);
  assert.deepEqual(
    children.map((child) => [child.nodes, child.level, child.strong, child.current]),
    [
      [[3], 2, true, true],
      [[4, 5], 2, false, false],
    ],
  );
  const middle = tree(4).outline().children[0]; // the current path first
  assert.deepEqual([middle.nodes, middle.current], [[4], true]);
  assert.deepEqual([middle.children[0].nodes, middle.children[0].level], [[5], 3]);
});

test("a tree in parts is the same as one that came as a whole", () => {
  const whole = payload(NODES, 3);
  whole.arrays.place = Int32Array.from([2, 1, 3, 0, START, 0, 2, 6]);
  whole.arrays.attention = Float32Array.from([0.5, 0.25, 0.25, 0, 1, 0, 0.75, 0.25, 0.5, 0.5]);
  const rest = payload([[5, 4, 6]], 3, { labels: { 6: "b" } });
  Object.assign(rest.arrays, { place: Int32Array.from([START, 0, 2, 0]), attention: whole.arrays.attention.slice(6) });
  const nodes = payload(NODES.slice(0, 4), 3);
  const steps = { place: Int32Array.from([2, 1, 3, 0]), attention: whole.arrays.attention.slice(0, 6) };
  for (const part of [nodes.arrays, rest.arrays]) for (const name of ["position", "logprob", "total", "how"]) part[name].fill(1);
  for (const name of ["position", "logprob", "total", "how"]) whole.arrays[name].fill(1);
  const [one, other] = [new Nodes(whole), new Nodes({ ...rest, parts: [nodes, { arrays: steps }] })];
  assert.deepEqual([...other.all], [...one.all]);
  assert.deepEqual(other.labels, one.labels);
  for (const at of [1, 3, 4]) assert.deepEqual(other.attended(at, "0.1"), one.attended(at, "0.1"));
  assert.deepEqual(other.outline(), one.outline());
});

test("attention is that of a head, or the mean of all", () => {
  const given = payload(NODES, 3);
  given.arrays.place = Int32Array.from([2, 1, 3, 0, START, 0, 2, 6]);
  given.arrays.attention = Float32Array.from([0.5, 0.25, 0.25, 0, 1, 0, 0.75, 0.25, 0.5, 0.5]);
  const nodes = new Nodes(given);
  assert.deepEqual(nodes.attended(3, "0.0"), { start: 1, weights: Float64Array.from([0.5, 0.25, 0.25]) });
  assert.deepEqual(nodes.attended(4, "0.1").weights, Float64Array.from([0, 1, 0]), "of the step after the same node");
  assert.deepEqual(nodes.attended(3, "").weights, Float64Array.from([0.25, 0.625, 0.125]));
  assert.deepEqual(nodes.attended(1, "0.1"), { start: 0, weights: Float64Array.from([0.5, 0.5]) });
  assert.equal(nodes.attended(NEXT, ""), null, "that of the current node did not travel");
  assert.equal(new Nodes({ ...given, current: 2 }).attended(NEXT, "0.0").start, 1);
  assert.equal(nodes.attended(START, ""), null);
});

test("the most attended come first, of equal ones the later", () => {
  assert.deepEqual(mostAttended(Float64Array.from([0.1, 0.3, 0.1, 0.5])), [3, 1, 2, 0]);
  assert.equal(mostAttended(new Float64Array(20)).length, 6);
});

test("the table has every token and says which are on the path", () => {
  const { columns, rows } = tree().table();
  const on = columns.indexOf("on the current path");
  assert.deepEqual(
    rows.map((row) => [row[0], row[on]]),
    [
      [1, "yes"],
      [2, "yes"],
      [3, "yes"],
      [4, "no"],
      [5, "no"],
    ],
  );
  for (const row of rows) assert.equal(row.length, columns.length);
});

test("arrow keys lead to the parent, the child, and the same place of other branches", () => {
  const nodes = tree();
  const go = (key, spot, lines = 2) => walk(key, spot, nodes, nodes.outline(), lines);
  assert.deepEqual(go("ArrowLeft", { node: 3 }), { node: 2 });
  assert.equal(go("ArrowLeft", { node: START }), null);
  assert.deepEqual(go("ArrowRight", { node: 2 }), { node: 3 }, "the child on the path");
  assert.deepEqual(go("ArrowRight", { node: 4 }), { node: 5 });
  assert.equal(go("ArrowRight", { node: 5 }), null);
  assert.deepEqual(go("ArrowDown", { node: 3 }), { node: 4 });
  assert.deepEqual(go("ArrowUp", { node: 4 }), { node: 3 });
  assert.equal(go("ArrowUp", { node: 3 }), null);
  assert.deepEqual(go("Home", { node: 5 }), { node: START });
  assert.deepEqual(go("End", { line: 1 }), { node: 3 });
});

test("beside the end of the path stand the lines of what may come next", () => {
  const nodes = tree();
  const go = (key, spot, lines = 2) => walk(key, spot, nodes, nodes.outline(), lines);
  assert.deepEqual(go("ArrowRight", { node: 3 }), { line: 0 });
  assert.equal(go("ArrowRight", { node: 3 }, 0), null, "none are shown");
  assert.deepEqual(go("ArrowDown", { line: 0 }), { line: 1 });
  assert.deepEqual(go("ArrowUp", { line: 1 }), { line: 0 });
  assert.deepEqual(go("ArrowLeft", { line: 1 }), { node: 3 });
  assert.equal(go("ArrowRight", { line: 1 }), null);
  assert.deepEqual(go("ArrowDown", { line: 1 }), { node: 5 }, "in the same place of the branch below");
  assert.deepEqual(go("ArrowUp", { node: 5 }), { line: 1 }, "the line next to it");
});
