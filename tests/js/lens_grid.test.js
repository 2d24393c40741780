// The cells of the logit lens and their layout.

import assert from "node:assert/strict";
import { test } from "node:test";
import { COLOURS, Cells, saidOf, tableOf } from "../../gptviz/components/lens_grid/cells.js";
import { layoutOf, usualLength } from "../../gptviz/components/lens_grid/layout.js";

const shaped = (array, ...shape) => Object.assign(array, { shape });

/** Two layers over three tokens of a vocabulary of four, the two likeliest of each cell. */
function cellsOf() {
  const layers = [
    { name: "embed", title: "the embedding", short: "embedding" },
    { name: "blocks.0.mlp", title: "the MLP of block 0", short: "MLP 0" },
  ];
  const arrays = {
    top: shaped(Int32Array.from([0, 1, 1, 2, 2, 0, 1, 0, 2, 1, 0, 2]), 2, 3, 2),
    probability: shaped(Float32Array.from([0.5, 0.2, 0.6, 0.1, 0.7, 0.1, 0.8, 0.1, 0.9, 0.05, 1, 0]), 2, 3, 2),
    final: shaped(Float32Array.from([0.2, 0.1, 0.1, 0.8, 0.9, 1]), 2, 3),
    entropy: shaped(Float32Array.from([1, 1.1, 0.9, 0.5, 0.2, 0]), 2, 3),
    rank: shaped(Int32Array.from([2, 4, 0, 1, 1, 0]), 2, 3),
    really: shaped(Float32Array.from([0.2, 0.01, NaN, 0.8, 0.9, NaN]), 2, 3),
  };
  const words = { names: ["a", "b", "<b>"], tokens: ["x", "y", "z"], true: ["b", "<b>", null], first: 10, vocabSize: 4 };
  return new Cells({ of: "t", model: "m", layers, ...words, spaced: false, code: "", asked: null, number: 0, arrays });
}

test("a cell has the tokens and numbers of its place", () => {
  const cells = cellsOf();
  assert.equal(cells.best({ layer: 1, index: 1 }), "<b>");
  assert.deepEqual(
    cells.likeliest({ layer: 0, index: 2 }).map(([token]) => token),
    ["<b>", "a"],
  );
  assert.equal(cells.numbers({ layer: 0, index: 1 }).rank, 4);
  assert.equal(cells.layerNamed("blocks.0.mlp"), 1);
  assert.equal(cells.layerNamed("constructor"), -1);
  assert.equal(cells.place({ layer: 1, index: 2 }), "After the MLP of block 0, at “z” (position 12)");
  assert.match(saidOf(cells, { layer: 0, index: 0 }), /really next: “b”, 20.0 %, rank 2/);
  assert.doesNotMatch(saidOf(cells, { layer: 0, index: 2 }), /really/);
});

test("colours are strongest where the model is sure or right, and blank where nothing is known", () => {
  const cell = { probability: 0.25, final: 0.1, entropy: Math.log(4), rank: 4 };
  assert.equal(COLOURS.probability.strength(cell, 4), 0.25);
  assert.equal(COLOURS.final.strength(cell, 4), 0.1);
  assert.ok(Math.abs(COLOURS.entropy.strength(cell, 4)) < 1e-12);
  assert.equal(COLOURS.entropy.strength({ ...cell, entropy: 0 }, 4), 1);
  assert.ok(Math.abs(COLOURS.rank.strength(cell, 4)) < 1e-12);
  assert.equal(COLOURS.rank.strength({ ...cell, rank: 1 }, 4), 1);
  assert.ok(Number.isNaN(COLOURS.rank.strength({ ...cell, rank: 0 }, 4)));
  for (const { strength } of Object.values(COLOURS)) assert.ok(strength({ ...cell, entropy: 0, rank: 1 }, 1) <= 1);
});

test("the table has a row for every cell, and nothing where nothing is known", () => {
  const { columns, rows } = tableOf(cellsOf());
  assert.equal(rows.length, 6);
  for (const row of rows) assert.equal(row.length, columns.length);
  assert.deepEqual(rows[0].slice(0, 4), ["embed", 10, "x", "a"]);
  assert.deepEqual(rows[2].slice(-3), [null, null, null]);
});

const names = (count, of = (i) => `t${i}`) => Array.from({ length: count }, (_, i) => of(i));

test("61 rows of 256 tokens fit on a page and on a phone, without names in the cells", () => {
  const labels = { layers: names(61, (i) => `attention ${i}`), tokens: names(256), names: names(9) };
  for (const room of [1200, 360]) {
    const layout = layoutOf(labels, room, 16, false);
    assert.ok(layout.left + 256 * layout.width <= room + 1e-6);
    assert.ok(layout.height * 61 <= 520);
    assert.equal(layout.letters, 0);
    assert.ok(layout.everyToken * layout.width >= layout.size, "names of tokens would lie on each other");
    assert.ok(layout.everyLayer * layout.height >= layout.size, "names of layers would lie on each other");
  }
});

test("61 rows of a short text have words, and scroll", () => {
  const labels = { layers: names(61, (i) => `attention ${i}`), tokens: names(14, () => "word"), names: names(9, () => "words") };
  const layout = layoutOf(labels, 820, 16, false);
  assert.ok(layout.letters >= 3);
  assert.ok(layout.height > layout.size);
  assert.equal(layout.everyLayer, 1);
  assert.ok(61 * layout.height > layout.most && layout.most <= 520);
});

test("a short text has its tokens in the cells", () => {
  const labels = { layers: names(5), tokens: names(8), names: names(9) };
  const layout = layoutOf(labels, 1000, 16, false);
  assert.ok(layout.letters >= 2);
  assert.equal(layout.everyToken, 1);
  assert.equal(layout.turned, false);
  assert.ok(layout.bottom > 0);
});

test("space that a reader puts between letters widens what names of several letters take, and no cell of one", () => {
  const labels = { layers: names(5), tokens: names(8, () => "a"), names: names(9, () => "b") };
  const [usual, spaced] = [0, 2].map((spacing) => layoutOf(labels, 300, 16, false, spacing));
  assert.equal(spaced.left - usual.left, 2 * ("really next".length + 1));
  assert.ok(spaced.letters >= 1);
  assert.equal(spaced.turned, false);
});

test("large cells have room for nine of ten tokens, however long the text is", () => {
  const labels = {
    layers: names(61),
    tokens: names(256, () => "word"),
    names: [...names(18, () => "words"), "incomprehensible"],
  };
  const layout = layoutOf(labels, 400, 16, true);
  assert.ok(layout.letters >= usualLength(labels.names));
  assert.equal(layout.turned, false);
});
