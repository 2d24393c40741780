// What is chosen in the attention explorer, and what a choice makes of the numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOfHeads } from "../../gptviz/components/attention_explorer/export.js";
import { layoutOf } from "../../gptviz/components/kit/square.js";
import { Numbers } from "../../gptviz/components/attention_explorer/numbers.js";
import { OF_HEADS, Selection, strongest } from "../../gptviz/components/attention_explorer/selection.js";
import { Choices } from "../../gptviz/components/kit/choices.js";
import { poolOf } from "../../gptviz/components/kit/heatmap.js";

/** Numbers of some blocks of heads over a text: a share is 1 / (place + 2), larger by the head. */
function numbersOf({ n_block = 2, n_head = 3, tokens = 4, first = 0, count = n_block, triangle = true, ...more } = {}) {
  const size = triangle ? (tokens * (tokens + 1)) / 2 : tokens * tokens;
  const shaped = (array, ...shape) => Object.assign(array, { shape });
  const labels = Array.from({ length: tokens }, (_, i) => `t${i}`);
  const share = (_, i) => (1 + (Math.floor(i / size) % n_head)) / ((i % size) + 2);
  const arrays = {
    pattern: shaped(Float32Array.from({ length: count * n_head * size }, share), count, n_head, size),
    moved: shaped(
      Float32Array.from({ length: count * n_head * tokens }, (_, i) => 1 + i),
      count,
      n_head,
      tokens,
    ),
    q: shaped(new Float32Array(count * n_head * tokens * 2), count, n_head, tokens, 2),
  };
  const declared = {
    ...{ block: { whole: [0, n_block - 1], usual: 1 }, head: { whole: [0, n_head - 1], usual: 0 } },
    heads: { names: ["one", "mean", "all"], pairs: [n_block, n_head, n_block * n_head], usual: "one" },
    ...{ show: { names: ["pattern", "value"], usual: "pattern" }, direction: { names: ["out", "in"], usual: "out" } },
    ...{ query: { whole: [0, tokens - 1], usual: null }, key: { whole: [0, tokens - 1], usual: null } },
    ...{
      sort: { names: ["spread"], usual: null },
      least: { whole: [0, 9_999], usual: null },
      log: { switch: true, usual: false },
    },
  };
  const header = { n_block, n_head, first, count, triangle, facts: ["spread"], alone: true };
  return Object.assign(new Numbers({ ...header, arrays, queries: labels, keys: labels, ...more }), { declared });
}

/** The choices of these numbers, the usual ones but for some changes. */
function choicesOf(numbers, changes = {}) {
  const choices = new Choices(({ query, key }) => (numbers.isCell(query, key) ? null : "key"));
  choices.declared = numbers.declared;
  Object.assign(choices.values, choices.usual, changes);
  return choices;
}

function choose(numbers, changes = {}) {
  return choicesOf(numbers, changes).values;
}

test("scores are scaled and capped as the model does, and heads that share keys are named", () => {
  const numbers = numbersOf({ tokens: 2, scale: 0.5, cap: 3, sharing: 2, n_head: 4 });
  numbers.arrays.k = numbers.arrays.q;
  numbers.arrays.q.fill(2); // two dimensions: q · k = 8
  assert.equal(numbers.score(1, 3, 1, 0), 3 * Math.tanh(4 / 3));
  const cell = numbers.cell(1, 3, 1, 0);
  assert.deepEqual([cell.scaled, cell.uncapped, cell.score], [4, 4, 3 * Math.tanh(4 / 3)]);
  assert.equal(numbers.shared(3), "Heads 2 to 3 share their keys and values.");
  assert.equal(numbersOf({ scale: 0.5, cap: null, sharing: 1 }).shared(3), "");
  numbers.cap = null;
  assert.equal(numbers.score(1, 3, 1, 0), 4);
});

test("without the first token a row is what is left of it, scaled up to one; blank where nothing is left", () => {
  const numbers = numbersOf({ tokens: 4 });
  for (const head of [1, "mean"]) {
    const left = [1, 2, 3].reduce((sum, key) => sum + numbers.pattern(0, head, 3, key), 0);
    for (const key of [1, 2, 3]) {
      assert.ok(Math.abs(numbers.rest(0, head, 3, key) - numbers.pattern(0, head, 3, key) / left) < 1e-12);
    }
    assert.deepEqual([numbers.rest(0, head, 3, 0), numbers.rest(0, head, 0, 0), numbers.rest(0, head, 1, 3)], [NaN, NaN, NaN]);
  }
});

test("the picture of a long text fits into its room, and a dot of it stands for several cells", () => {
  const labels = (count) => Array.from({ length: count }, () => "word");
  for (const count of [40, 500, 2048, 8192]) {
    const { left, top, cell, every } = layoutOf({ queries: labels(count), keys: labels(count) }, { width: 272, height: 300 }, 16);
    assert.ok(left + cell * count <= 272.001 && top + cell * count <= 300.001, String(count));
    assert.ok(count / every <= 300 / 12);
    assert.equal(poolOf(cell), Math.max(1, Math.floor(1 / cell)));
  }
  assert.equal(poolOf(3), 1);
});

test("of heads together the mean and the largest are those of all cells, in whichever order blocks are looked at", () => {
  for (const triangle of [true, false]) {
    const numbers = numbersOf({ n_block: 3, triangle });
    const each = (value) => [0, 1, 2].map((head) => value(head));
    for (const block of [2, 0, 2, 1]) {
      for (const show of ["pattern", "value"]) {
        for (let query = 0; query < 4; query++) {
          for (let key = 0; key < 4; key++) {
            const mean = each((head) => numbers[show](block, head, query, key)).reduce((sum, one) => sum + one, 0) / 3;
            assert.equal(numbers[show](block, "mean", query, key), mean);
          }
        }
      }
      const cells = [0, 1, 2, 3].flatMap((query) => [0, 1, 2, 3].map((key) => [query, key]));
      const seen = cells.filter(([query, key]) => numbers.isVisible(query, key, block));
      const all = seen.flatMap(([query, key]) => each((head) => numbers.value(block, head, query, key)));
      const heads = each((head) => [block, head]);
      assert.equal(numbers.largest("value", heads), Math.max(...all));
      assert.equal(numbers.largest("pattern", heads), 1);
    }
  }
});

test("another choice walks over no head again, and numbers of another block are its own", () => {
  const walked = (numbers) => {
    let count = 0;
    const { square } = Object.getPrototypeOf(numbers);
    numbers.square = (...at) => {
      count++;
      return square.apply(numbers, at);
    };
    return () => count;
  };
  const first = numbersOf({ tokens: 20, first: 0, count: 1 }),
    count = walked(first);
  for (const heads of ["all", "mean"]) {
    const look = (changes) => {
      const { largest, large, value } = new Selection(first, choose(first, { block: 0, show: "value", heads, ...changes }));
      return heads === "mean" ? [largest, value(...large, 7, 3)] : [largest];
    };
    const before = look({});
    const walks = count();
    assert.ok(walks > 0);
    assert.deepEqual(look({ query: 7, key: 3 }), before);
    assert.deepEqual(look({ log: true, direction: "in" }), before);
    assert.equal(count(), walks);
  }
  const later = numbersOf({ tokens: 20, first: 1, count: 1 });
  later.arrays.moved.fill(1000);
  // Of the first cell the heads give shares of 1/2, 2/2 and 3/2.
  assert.equal(new Selection(later, choose(later, { block: 1, show: "value", heads: "mean" })).largest, 1000);
  assert.equal(new Selection(later, choose(later, { block: 1, show: "value", heads: "all" })).largest, 1500);
});

test("a norm behind attention scales what every query adds", () => {
  const plain = numbersOf({ tokens: 5 }),
    normed = numbersOf({ tokens: 5 });
  normed.arrays.scaled = Object.assign(
    Float32Array.from({ length: normed.count * 5 }, (_, i) => 1 + i),
    { shape: [normed.count, 5] },
  );
  for (const [block, query, key] of [
    [0, 2, 1],
    [1, 4, 3],
  ]) {
    const scale = 1 + 5 * block + query;
    assert.equal(normed.moved(block, 1, query, key), plain.moved(block, 1, query, key) * scale);
    assert.equal(normed.value(block, 1, query, key), normed.pattern(block, 1, query, key) * normed.moved(block, 1, query, key));
  }
});

test("the rows of what is looked at are those of each head, for one token after another", () => {
  const numbers = numbersOf();
  const selection = new Selection(numbers, choose(numbers, { heads: "all" }));
  for (const at of [
    { side: "query", index: 2 },
    { side: "query", index: 2 },
    { side: "key", index: 2 },
    { side: "key", index: 1 },
  ]) {
    assert.deepEqual(
      selection.rows(at),
      [0, 1, 2].map((head) => selection.row(at, [1, head])),
    );
  }
});

test("the window of a block is said in tokens", () => {
  const numbers = numbersOf({ windows: [null, 3] });
  assert.equal(numbers.windowed(0), "");
  assert.equal(numbers.windowed(1), "Block 1 has a window: a token reads itself and the 2 before it.");
  assert.equal(numbersOf().windowed(1), "");
});

test("what only one block hides can be chosen in the others", () => {
  const numbers = numbersOf({ tokens: 3 });
  for (let head = 0; head < 3; head++) numbers.arrays.pattern[(3 + head) * 6 + numbers.place(2, 0)] = NaN;
  assert.deepEqual([numbers.isVisible(2, 0, 0), numbers.isVisible(2, 0, 1), numbers.isVisible(2, 1, 1)], [true, false, true]);
  numbers.arrays.rollout = new Float32Array(2 * 6).fill(0.1);
  assert.equal(numbers.isVisible(2, 0, 1, "rollout"), true); // through the block before
});

test("possible values of a link are taken, impossible ones are refused by name", () => {
  const numbers = numbersOf();
  for (const [key, value, expected] of [
    ["block", "0", 0],
    ["head", "2", 2],
    ["heads", "mean", "mean"],
    [
      "heads",
      "0.1 1.2",
      [
        [0, 1],
        [1, 2],
      ],
    ],
    ["show", "value", "value"],
    ["direction", "in", "in"],
    ["query", "3", 3],
    ["sort", "spread", "spread"],
    ["least", "12", 12],
    ["log", "True", true],
  ]) {
    const choices = choicesOf(numbers);
    assert.deepEqual(choices.take({ [key]: value }), [], `${key} = ${value}`);
    assert.deepEqual(choices.values[key], expected);
  }
  const made = { block: ["2", "-1", "x", "1.0", ""], heads: ["7.7", "0.1,1.2", "all "], show: ["all", "rollout", "__proto__"] };
  Object.assign(made, { query: ["4", "<b>x</b>", "9999999"], sort: ["size"], least: ["a", "-3"], direction: ["up"], log: ["1"] });
  for (const [key, values] of Object.entries(made)) {
    for (const value of values) {
      const choices = choicesOf(numbers);
      assert.deepEqual(choices.take({ [key]: value }), [[key, value]]);
      assert.deepEqual(choices.values, choose(numbers));
    }
  }
});

test("keys that are none of a choice are passed over, and null asks for what is usual", () => {
  const numbers = numbersOf();
  const choices = choicesOf(numbers, { show: "value", query: 2 });
  assert.deepEqual(choices.take({ constructor: "1", model: "x", show: null, query: null }), []);
  assert.deepEqual(choices.values, choose(numbers));
});

test("a cell that the mask hides is refused as a whole, whichever order it is asked for in", () => {
  const numbers = numbersOf();
  for (const asked of [
    { query: "1", key: "2" },
    { key: "2", query: "1" },
  ]) {
    const choices = choicesOf(numbers);
    assert.deepEqual(choices.take(asked), [["key", "2"]]);
    assert.deepEqual([choices.values.query, choices.values.key], [1, null]);
  }
  assert.deepEqual(choicesOf(numbers).take({ query: "2", key: "2" }), []);
});

test("for other numbers a choice stays where it is possible, as a link to it would be read", () => {
  const chosen = { block: 3, head: 1, query: 7, show: "value", log: true };
  const choices = choicesOf(numbersOf({ n_block: 4, n_head: 8, tokens: 9 }), chosen);
  const numbers = numbersOf();
  choices.fit(numbers.declared);
  assert.deepEqual(choices.values, choose(numbers, { head: 1, show: "value", log: true }));
  const pairs = [0, 1].map((block) => [block, block + 1]);
  const same = choose(numbers, { heads: pairs, direction: "in", key: 3 });
  choices.values = { ...same };
  choices.fit(numbers.declared);
  assert.deepEqual(choices.values, same);
});

test("the strongest are the largest in their order, without what is hidden, the first of equals first", () => {
  assert.deepEqual(strongest([0.1, NaN, 0.5, 0.5, 0.2], 3), [2, 3, 4]);
  assert.deepEqual(strongest([NaN, NaN], 2), []);
  assert.deepEqual(strongest([1, 2], 5), [1, 0]);
  const values = Array.from({ length: 200 }, (_, i) => (i * 7919) % 211);
  const sorted = values.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  assert.deepEqual(strongest(values, 20), sorted.slice(0, 20));
});

test("the heads drawn follow from the choice, each several in a colour of its own", () => {
  const numbers = numbersOf();
  const heads = (changes) => new Selection(numbers, choose(numbers, changes));
  assert.deepEqual(heads({ head: 2 }).heads, [[1, 2]]);
  assert.deepEqual(heads({ heads: "all" }).heads, [
    [1, 0],
    [1, 1],
    [1, 2],
  ]);
  assert.deepEqual(heads({ heads: "mean" }).heads, [[1, "mean"]]);
  assert.deepEqual(heads({ heads: "mean" }).marked, [
    [1, 0],
    [1, 1],
    [1, 2],
  ]);
  assert.deepEqual(heads({ heads: "all", show: "rollout" }).heads, [[1, 0]]);
  assert.equal(new Set(heads({ heads: "all" }).colours).size, 3);
  const some = new Selection(
    numbersOf({ first: 1, count: 1 }),
    choose(numbers, {
      heads: [
        [0, 0],
        [1, 1],
      ],
    }),
  );
  assert.deepEqual(some.loaded, [[1, 1]]);
});

test("a row is that of the tensor, a column too, NaN where the mask hides; a mean is that of all heads", () => {
  const numbers = numbersOf();
  const one = new Selection(numbers, choose(numbers, { head: 2 }));
  const at = (query, key) => (key > query ? NaN : Math.fround(3 / ((query * (query + 1)) / 2 + key + 2)));
  assert.deepEqual(
    [...one.row({ side: "query", index: 2 }, [1, 2])],
    [0, 1, 2, 3].map((key) => at(2, key)),
  );
  assert.deepEqual(
    [...one.row({ side: "key", index: 1 }, [1, 2])],
    [0, 1, 2, 3].map((query) => at(query, 1)),
  );
  const mean = new Selection(numbers, choose(numbers, { heads: "mean" }));
  const [value] = mean.row({ side: "query", index: 2 }, mean.large);
  assert.ok(Math.abs(value - (2 / 3) * at(2, 0)) < 1e-7);
});

test("a head compared is added, or taken out; the last one and a thirteenth change nothing", () => {
  const numbers = numbersOf({ n_head: 20 });
  const compared = (heads, at) => new Selection(numbers, choose(numbers, { heads, block: 0, head: 1 })).compared(at);
  assert.deepEqual(compared("one", [1, 2]), {
    heads: [
      [0, 1],
      [1, 2],
    ],
    block: 1,
    head: 2,
  });
  assert.deepEqual(
    compared(
      [
        [0, 1],
        [1, 2],
      ],
      [1, 2],
    ),
    { heads: [[0, 1]], block: 0, head: 1 },
  );
  assert.equal(compared([[0, 1]], [0, 1]), null);
  const full = OF_HEADS.map((_, head) => [0, head]);
  assert.equal(compared(full, [1, 0]), null);
  assert.equal(compared(full, [0, 3]).heads.length, OF_HEADS.length - 1);
});

test("what is looked at: the pointer before what is held, both sides together where one is held", () => {
  const numbers = numbersOf();
  const aim = (changes, over = {}, isAlways = true) => new Selection(numbers, choose(numbers, changes)).aim(over, isAlways);
  assert.equal(aim({}, {}, false), null);
  assert.deepEqual(aim({}), { side: "query", index: 3, partner: null });
  assert.deepEqual(aim({ direction: "in" }), { side: "key", index: 0, partner: null });
  assert.deepEqual(aim({}, { query: 2 }), { side: "query", index: 2, partner: null });
  assert.deepEqual(aim({}, { key: 1 }), { side: "key", index: 1, partner: null });
  assert.deepEqual(aim({ query: 2 }), { side: "query", index: 2, partner: null });
  assert.deepEqual(aim({ query: 2 }, { key: 1 }), { side: "query", index: 2, partner: 1 });
  assert.deepEqual(aim({ key: 1 }, { query: 3 }), { side: "key", index: 1, partner: 3 });
  assert.deepEqual(aim({ query: 2, key: 1 }), { side: "query", index: 2, partner: 1 });
  assert.deepEqual(aim({ query: 2, direction: "in" }, { query: 3, key: 1 }), { side: "key", index: 1, partner: 3 });
});

test("of a mean the arithmetic is that of the head that reads most there", () => {
  const numbers = numbersOf();
  assert.deepEqual(new Selection(numbers, choose(numbers, { heads: "mean", query: 2, key: 0 })).opened, [1, 2]);
  assert.deepEqual(new Selection(numbers, choose(numbers, { head: 1, query: 2, key: 0 })).opened, [1, 1]);
});

test("the code of a cell counts blocks from the first that is read", () => {
  for (const [sent, at] of [
    [{ n_block: 4 }, 2],
    [{ n_block: 4, first: 2, count: 1 }, 0],
  ]) {
    const numbers = numbersOf({ ...sent, code: "reading = …" });
    const code = codeOfHeads(new Selection(numbers, choose(numbers, { block: 2, head: 1, query: 3, key: 1 })));
    assert.ok(code.includes(`products = reading.q[${at}, 1, 3] * reading.k[${at}, 1, 1]`), code);
    assert.ok(code.includes("share = reading.pattern(2, 1)[3, 1]"), code);
  }
});
