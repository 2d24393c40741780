// The parts of the map that need no page: boxes, what is open, questions, geometry, the keyboard, the cells of a tensor.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Boxes, aloud, short, sizes, titleOf } from "../../gptviz/components/model_map/boxes.js";
import { Cells } from "../../gptviz/components/model_map/cells.js";
import {
  apart,
  direction,
  drawnBlocks,
  Layout,
  rounded,
  SMALL,
  squares,
  turns,
} from "../../gptviz/components/model_map/geometry.js";
import { Opened } from "../../gptviz/components/model_map/opened.js";
import { Choices } from "../../gptviz/components/kit/choices.js";
import { Questions } from "../../gptviz/components/model_map/questions.js";

const NONE = { box: null, block: "2", tensor: 0, head: 0, sizes: false };

function pieceOf(name, shape, axes, more = {}) {
  return { name, shape, axes, kind: "activation", symbol: name.split(".").at(-1), rows: null, parameters: 0, ...more };
}

/** The boxes of a model of `blocks` blocks with `heads` heads, of which two travel. */
function boxesOf({ blocks = 6, encoder = 0, heads = 3 } = {}) {
  const box = (path, pieces = []) => ({ path, name: path.split(".").at(-1), part: "", role: "query", pieces });
  const block = (at) => [
    box(`${at}resid_pre`, [pieceOf(`${at}resid_pre`, [4, 8], ["token", "d_model"])]),
    box(`${at}attention.q`, [
      pieceOf(`${at}attention.q`, [heads, 4, 2], ["head", "token", "d_head"]),
      pieceOf(`${at}attention.weight`, [8, 8], ["head · d_head", "d_model"], { kind: "weight", parameters: 64, symbol: "W_Q" }),
    ]),
  ];
  const stack = (prefix, count) => [0, 1].filter((i) => i < count).flatMap((i) => block(`${prefix}blocks.${i}.`));
  const boxes = [box("embed"), ...stack("encoder.", encoder), ...stack("", blocks), box("logits")];
  const arrows = [
    ["blocks.0.resid_pre", "blocks.1.attention.q", [4, 8]],
    ["blocks.1.resid_pre", "blocks.1.attention.q", [4, 8]],
  ];
  const alike = (count) => Array.from({ length: count }, (_, i) => Math.min(i, 1));
  return new Boxes({ sizes: [encoder, blocks], boxes, arrows, like: { "encoder.": alike(encoder), "": alike(blocks) } });
}

/** What a link opens in a model of `blocks` blocks. */
function openedOf(asked, { blocks = 6, encoder = 0, heads = 3 } = {}) {
  const opened = new Opened();
  opened.boxes = boxesOf({ blocks, encoder, heads });
  const named = (prefix, count) => Array.from({ length: count }, (_, block) => prefix + block);
  const paths = ["", "encoder."].flatMap((stack) =>
    named("", stack ? encoder : blocks).flatMap((block) => opened.boxes.of(stack, Number(block))),
  );
  const declared = {
    box: { names: ["embed", "logits", ...paths], usual: null },
    block: { names: [...named("", blocks), ...named("encoder.", encoder)], usual: "2" },
    tensor: { whole: [0, 1], usual: 0 },
    head: { whole: [0, heads - 1], usual: 0 },
    sizes: { switch: true, usual: false },
  };
  const choices = new Choices();
  choices.declared = declared;
  Object.assign(choices.values, choices.usual);
  choices.take(asked);
  opened.take(choices.values);
  opened.fit();
  return opened;
}

test("blocks that did not travel are like the second, under their own names", () => {
  const boxes = boxesOf();
  const far = boxes.get("blocks.5.attention.q");
  assert.deepEqual(
    far.pieces.map(({ name }) => name),
    ["blocks.5.attention.q", "blocks.5.attention.weight"],
  );
  assert.deepEqual(boxes.of("", 4), ["blocks.4.resid_pre", "blocks.4.attention.q"]);
  assert.deepEqual(
    boxes.arrows("", 3).map(([start, end]) => [start, end]),
    [
      ["blocks.0.resid_pre", "blocks.3.attention.q"],
      ["blocks.3.resid_pre", "blocks.3.attention.q"],
    ],
  );
  for (const path of ["blocks.6.attention.q", "blocks.0.nothing", "encoder.blocks.0.attention.q", "__proto__", "a\nb"])
    assert.equal(boxes.get(path), undefined, path);
});

test("a block is like the one that stands for it, not always the second", () => {
  const boxes = boxesOf();
  boxes.data.like[""] = [0, 1, 1, 3, 1, 3];
  boxes.known.set("blocks.3.attention.q", { path: "blocks.3.attention.q", pieces: [pieceOf("blocks.3.attention.q", [9], [])] });
  assert.deepEqual(boxes.get("blocks.5.attention.q").pieces[0].shape, [9]);
  assert.equal(boxes.get("blocks.5.attention.q").pieces[0].name, "blocks.5.attention.q");
  assert.deepEqual(boxes.get("blocks.4.attention.q").pieces[0].shape, [3, 4, 2]);
});

test("the cells of key heads are called by their heads", () => {
  assert.equal(cellsOf(true, { axes: ["key head", "token", "key head · d_head"] }).grid.columns[0].name, "kh1·0");
  const opened = openedOf({ box: "blocks.3.attention.q", head: "2" });
  opened.boxes.get("blocks.1.attention.q").pieces[0].axes[0] = "key head";
  opened.open(opened.path, null);
  assert.equal(opened.head, 2);
});

test("boxes and counts are called by words and few characters", () => {
  const boxes = boxesOf({ encoder: 2 });
  assert.equal(titleOf(boxes.get("encoder.blocks.1.attention.q")), "q (encoder, block 1)");
  assert.equal(titleOf({ path: "blocks.0.cross_attention.sum", name: "⊕" }), "Sum (cross-attention, block 0)");
  assert.equal(aloud(boxes.get("blocks.5.attention.q")), "q (block 5), q (3, 4, 2), 64 parameters");
  assert.deepEqual([sizes([3]), sizes([3, 4])], ["(3,)", "(3, 4)"]);
  assert.deepEqual([99_999, 100_000, 2_682_432, 3e9].map(short), ["99\u202f999", "100 k", "2.68 M", "3.00 G"]);
  assert.deepEqual(
    [boxes.blockName("encoder.", 1), boxes.blockName("", 0), boxesOf().blockName("", 0)],
    ["Encoder block 1", "Decoder block 0", "Block 0"],
  );
});

test("a link opens what the model has, and nothing else", () => {
  const opened = openedOf({ box: "blocks.3.attention.q", tensor: "1" });
  assert.deepEqual([opened.path, opened.block, opened.piece], ["blocks.3.attention.q", 3, 1]);
  for (const box of ["nothing", "blocks.99.attention.q", "<img src=x>", "blocks.0.attention", "__proto__", "", "a\nb"]) {
    const none = openedOf({ box, tensor: "x", head: "-1", block: "7e9" });
    assert.deepEqual(none.chosen, NONE, box);
    assert.equal(none.block, 2);
  }
  assert.deepEqual(openedOf({ block: "5" }).chosen, { ...NONE, block: "5" });
  assert.deepEqual(openedOf({ block: "99" }).chosen, NONE);
  assert.deepEqual(openedOf({ block: "encoder.1" }, { encoder: 3 }).chosen, { ...NONE, block: "encoder.1" });
  for (const tensor of ["-1", "0.5", "2", "x"]) assert.equal(openedOf({ box: "blocks.0.attention.q", tensor }).piece, 0, tensor);
});

test("a link to a head shows it, and one that is none shows the first", () => {
  for (const [head, expected] of [
    ["2", 2],
    ["3", 0],
    ["-1", 0],
    ["x", 0],
    ["1.5", 0],
  ]) {
    const opened = openedOf({ box: "blocks.3.attention.q", head });
    opened.open(opened.path, null);
    assert.equal(opened.head, expected, head);
    assert.equal(opened.chosen.head, expected);
  }
});

test("what is open can be reopened from the address", () => {
  const opened = openedOf({});
  opened.open("blocks.4.attention.q", 2);
  const again = openedOf(opened.chosen);
  again.open(again.path, null);
  assert.deepEqual(again.chosen, opened.chosen);
  assert.deepEqual(again.at, [2, 0, 0]);
  opened.choosePiece(1);
  assert.deepEqual(opened.chosen, { box: "blocks.4.attention.q", block: null, tensor: 1, head: 0, sizes: false });
  assert.equal(openedOf({ sizes: "true" }).chosen.sizes, true);
});

test("another block keeps the same box open, another head is shown, and pages end where the tensor does", () => {
  const opened = openedOf({ box: "blocks.3.attention.q" });
  opened.openBlock("", 5);
  assert.equal(opened.path, "blocks.5.attention.q");
  assert.equal(opened.open("blocks.5.attention.q", 1), false);
  assert.equal(opened.head, 1);
  opened.open("blocks.5.attention.q", 0);
  assert.equal(opened.head, 0, "the first head too");
  assert.equal(opened.open("blocks.1.attention.q", null), true);
  opened.move(1, 99);
  opened.move(2, -5);
  assert.deepEqual(opened.at, [0, 3, 0]);
  assert.equal(opened.open("embed", null), false);
  assert.equal(opened.block, 1);
});

test("after another model what it lacks is closed, and what is shown is within its tensor", () => {
  const opened = openedOf({ box: "blocks.5.attention.q" });
  opened.open(opened.path, 2);
  opened.boxes = boxesOf({ heads: 2 });
  opened.fit();
  assert.equal(opened.head, 1);
  opened.boxes = boxesOf({ blocks: 3 });
  opened.fit();
  assert.deepEqual([opened.path, opened.block], [null, 2]);
});

test("numbers are those to show if box, tensor and page are", () => {
  const opened = openedOf({ box: "blocks.3.attention.q" });
  opened.open(opened.path, 1);
  const tensor = { box: "blocks.3.attention.q", piece: 0, at: [1, 0, 0], whole: false };
  assert.ok(opened.isOf(tensor));
  assert.ok(opened.isOf({ ...tensor, at: [0, 0, 0], whole: true }));
  for (const change of [{ box: "embed" }, { piece: 1 }, { at: [0, 0, 0] }]) assert.ok(!opened.isOf({ ...tensor, ...change }));
});

test("one question at a time; a lost one is asked again after its time, an answered one not at all", () => {
  const sent = [];
  let now = 0;
  const questions = new Questions(
    (question) => sent.push(JSON.parse(question)),
    () => now,
  );
  const opened = openedOf({ box: "blocks.3.attention.q" });
  opened.open(opened.path, 1);
  const nothing = { opened: null, tensor: null };
  questions.ask(opened, nothing);
  assert.deepEqual(sent, [{ box: "blocks.3.attention.q", piece: 0, at: [1, 0, 0] }]);
  opened.open("embed", null);
  now = 4_999;
  questions.ask(opened, nothing);
  assert.equal(sent.length, 1, "while an answer may come");
  now = 5_001;
  questions.ask(opened, nothing);
  assert.deepEqual(sent.at(-1), { box: "embed", piece: 0, at: [] });
  const answer = { opened: ["embed", 0, []], tensor: null };
  questions.hear(answer);
  questions.ask(opened, answer);
  assert.equal(sent.length, 2);
  opened.open("blocks.3.attention.q", 0);
  questions.ask(opened, answer);
  assert.equal(sent.length, 3, "an answer ends the wait");
});

test("of a tensor that came whole other pages are not asked for, but the server hears of another head", () => {
  const sent = [];
  const questions = new Questions(
    (question) => sent.push(JSON.parse(question)),
    () => 0,
  );
  const opened = openedOf({ box: "blocks.3.attention.q" });
  opened.open(opened.path, 1);
  const data = { opened: [opened.path, 0, [1, 0, 0]], tensor: { box: opened.path, piece: 0, at: [1, 0, 0], whole: true } };
  opened.move(1, 2);
  questions.ask(opened, data);
  assert.deepEqual(sent, []);
  opened.move(0, 2);
  questions.ask(opened, data);
  assert.deepEqual(sent.at(-1)?.at, [2, 2, 0]);
});

test("the layout has room for its parts, one below the other, and fills the page", () => {
  const [few, many] = [800, 900];
  const one = new Layout({ least: few, isDouble: false, hasBlock: true });
  const two = new Layout({ least: many, isDouble: true, hasBlock: true });
  for (const layout of [one, two]) {
    assert.ok(layout.topOfBlock > layout.topOf(layout.stacks.length - 1) + layout.row);
    assert.equal(layout.height, layout.topOfBlock + layout.block);
    assert.ok(SMALL * layout.zoom(390) >= 12, "on a phone the map scrolls");
    assert.ok(layout.zoom(100_000) <= 1.6);
    assert.ok(layout.width * layout.zoom(1_000) <= 1_000 + 1e-9);
  }
  assert.equal(new Layout({ least: few, isDouble: false, hasBlock: false }).height, one.row);
  assert.ok(two.width > one.width);
  for (const least of [few, many, 1_100])
    for (const room of [390, 1_280]) assert.ok(new Layout({ least, isDouble: false, hasBlock: true }, room).width >= least);
});

test("an arrow goes through its points in rounded corners and ends at the last", () => {
  assert.equal(
    rounded([
      [0, 0],
      [20, 0],
      [20, 40],
    ]),
    "M0,0L12,0Q20,0 20,8L20,40",
  );
  assert.equal(
    rounded([
      [0, 0],
      [4, 0],
      [4, 40],
    ]),
    "M0,0L2,0Q4,0 4,8L4,40",
  );
  assert.deepEqual(
    [
      direction([
        [0, 0],
        [5, 0],
      ]),
      direction([
        [5, 5],
        [5, 0],
      ]),
    ],
    [0, -90],
  );
  assert.deepEqual(
    apart([
      [0, 0],
      [0, 0.2],
      [3, 0],
    ]),
    [
      [0, 0],
      [3, 0],
    ],
  );
});

test("patterns of any number of heads fit, as large as they can be", () => {
  for (let n = 1; n <= 30; n++) {
    const [side, columns] = squares(n, 160, 84);
    const rows = Math.ceil(n / columns);
    assert.ok(columns * (side + 3) - 3 <= 160 + 1e-9 && rows * (side + 3) - 3 <= 84 + 1e-9, `${n} fit`);
    for (let other = 1; other <= n; other++)
      assert.ok(side >= Math.min(163 / other - 3, 87 / Math.ceil(n / other) - 3) - 1e-9, `${n} are large`);
  }
});

test("of many blocks the ends and the open one with its neighbours are drawn, with a gap where some are left out", () => {
  assert.deepEqual(drawnBlocks(3, 1), [0, 1, 2]);
  assert.deepEqual(drawnBlocks(0, 0), []);
  for (const open of [0, 1, 7, 20, 38, 39]) {
    const drawn = drawnBlocks(40, open);
    assert.ok(drawn.includes(open) && drawn.includes(0) && drawn.includes(39) && drawn.length <= 16);
    for (let i = 1; i < drawn.length; i++) {
      if (drawn[i] === null) assert.ok(drawn[i + 1] - drawn[i - 1] > 1);
      else if (drawn[i - 1] !== null) assert.equal(drawn[i], drawn[i - 1] + 1);
    }
  }
});

/** Cells of a tensor [2, 3, 4] that holds 0, 1, 2, …, whole or the page from [1, 1, 2] on. */
function cellsOf(whole, changes = {}) {
  const at = [1, 1, 2];
  const all = Float32Array.from({ length: 24 }, (_, i) => i);
  const page = Float32Array.from([18, 19, 22, 23]);
  const tensor = Object.assign(whole ? all : page, { shape: whole ? [2, 3, 4] : [2, 2] });
  const data = { page: 2, d_head: 2, context: 8, mask: "causal", windows: [null, 1] };
  data.arrays = { tensor, summary: [0, 23, 11.5, 13] };
  const piece = pieceOf("blocks.0.attention.q", [2, 3, 4], ["head", "token", "head · d_head"]);
  const labels = [null, whole ? ["a", "b", "c"] : ["b", "c"], null];
  return new Cells({ piece: { ...piece, ...changes }, tensor: { whole, at, labels }, at, data });
}

test("a page shows the same cells whether the tensor came whole or the page alone", () => {
  for (const whole of [true, false]) {
    const cells = cellsOf(whole);
    const { rows, columns } = cells.grid;
    assert.deepEqual(
      rows.map(({ name, number }) => [name, number]),
      [
        ["b", 1],
        ["c", 2],
      ],
    );
    assert.deepEqual(
      columns.map(({ name }) => name),
      ["h1·0", "h1·1"],
    );
    assert.deepEqual(
      rows.map((row) => row.cells.map((at) => cells.valueAt(at))),
      [
        [18, 19],
        [22, 23],
      ],
    );
    assert.deepEqual(cells.ends, ["−23.0", "23.0"]);
    assert.deepEqual([cells.placeOf(0), cells.placeOf(23), cells.placeOf(-23)], [0.5, 1, 0]);
  }
  assert.deepEqual(cellsOf(false).table, {
    columns: ["head", "token position", "token", "head · d_head position", "head · d_head", "q"],
    rows: [
      [1, 1, "b", 2, "h1·0", 18],
      [1, 1, "b", 3, "h1·1", 19],
      [1, 2, "c", 2, "h1·0", 22],
      [1, 2, "c", 3, "h1·1", 23],
    ],
  });
  assert.deepEqual(
    cellsOf(true).table.rows.map((row) => row.at(-1)),
    [...Array(24).keys()],
  );
});

test("a pattern under a causal mask is blank where a key comes after its query, and its scale ends at 1", () => {
  const cells = cellsOf(true, { name: "blocks.0.attention.pattern", symbol: "pattern", axes: ["head", "token", "token"] });
  assert.deepEqual([cells.written([0, 1, 2]), cells.written([0, 1, 1]), cells.written([0, 0, 0])], ["", "5.00", "0"]);
  assert.deepEqual(cells.ends, ["0", "1"]);
  assert.match(cells.unit, /share of the row; what the mask hides/);
  const near = cellsOf(true, { name: "blocks.1.attention.pattern", symbol: "pattern", axes: ["head", "token", "token"] });
  assert.deepEqual([near.written([0, 1, 0]), near.written([0, 1, 1]), cells.written([0, 1, 0])], ["", "5.00", "4.00"]);
  const open = cellsOf(true, { name: "encoder.blocks.0.attention.pattern", symbol: "pattern" });
  assert.equal(open.written([0, 1, 2]), "6.00");
});

test("a vector without names is written in lines, one with names in a column", () => {
  const data = { page: 3, d_head: 2, context: 8, mask: "", arrays: { summary: [0, 9, 4, 5] } };
  data.arrays.tensor = Object.assign(
    Float32Array.from({ length: 10 }, (_, i) => i),
    { shape: [10] },
  );
  const vector = (axis, labels) =>
    new Cells({ piece: pieceOf("bias", [10], [axis]), tensor: { whole: true, at: [9], labels: [labels] }, at: [9], data });
  const lines = vector("d_model", null);
  assert.deepEqual(
    lines.grid.rows.map(({ name, cells }) => [name, cells]),
    [["9", [[9]]]],
  );
  lines.at = [0];
  assert.deepEqual(
    lines.grid.rows.map(({ cells }) => cells.length),
    [3, 3, 3],
  );
  const column = vector("vocabulary", [..."abcdefghij"]);
  assert.deepEqual(column.grid, { rows: [{ name: "j", number: 9, cells: [[9]] }], columns: [{ name: "bias", number: null }] });
});

test("a path turns from level to plumb and back, and stands still nowhere", () => {
  assert.deepEqual(turns(1, 2, 10, 20, 30), [
    [1, 2],
    [10, 2],
    [10, 20],
    [30, 20],
  ]);
  assert.deepEqual(turns(1, 2, 1, 20), [
    [1, 2],
    [1, 20],
  ]);
  assert.equal(direction(turns(1, 2, 1)), 0, "of a path without a length");
});
