// The text that grows on the page "Try it"; tests/takehome/test_live.py compares what it shows with the library's.

import assert from "node:assert/strict";
import test from "node:test";
import { FIRST_TOKENS, Tree } from "../../gptviz/takehome/live/tree.js";

const SAMPLING = { temperature: 1, top_k: 0, top_p: 1, seed: 3 };

/** A reading of two tokens by a model whose passes take `milliseconds` each. @param {number} milliseconds */
function slow(milliseconds, context) {
  const passes = { count: 0 };
  context.mock.method(performance, "now", () => passes.count * milliseconds);
  const decoder = {
    ...{ blocks: [], vocabSize: 5, config: { context_length: 8, n_head: 1 } },
    read(ids) {
      passes.count += 1;
      return Float32Array.from({ length: 5 }, (_, token) => Math.sin(7 * token + ids.at(-1) + ids.length));
    },
  };
  return { passes, reading: { decoder, text: [1, 2], tokenizer: {} } };
}

const tokensOf = (tree) => tree.path().map(({ token }) => token);

test("a text opens in slices, of one pass each where a pass takes long, and is the same text", (context) => {
  const quick = new Tree(slow(0, context).reading, [], null);
  quick.open(SAMPLING);
  assert.deepEqual([quick.path().length, quick.isOpening], [FIRST_TOKENS, false]);
  context.mock.restoreAll();
  const { passes, reading } = slow(1000, context),
    tree = new Tree(reading, [], null);
  tree.after(0);
  for (let slices = 1; slices <= FIRST_TOKENS; slices++) {
    tree.open(SAMPLING);
    assert.deepEqual([tree.path().length, passes.count, tree.isOpening], [slices, slices + 1, slices < FIRST_TOKENS]);
  }
  tree.open(SAMPLING);
  assert.deepEqual(tokensOf(tree), tokensOf(quick));
});

test("it opens no further after a reader stopped it or did something else, nor past its end", (context) => {
  for (const act of ["stop", "step", "undo", "restart"]) {
    context.mock.restoreAll();
    const tree = new Tree(slow(1000, context).reading, [], null);
    tree.open(SAMPLING);
    tree.open(SAMPLING);
    tree.act({ act, sampling: SAMPLING });
    const written = { stop: 2, step: 3, undo: 1, restart: 0 }[act];
    tree.open(SAMPLING);
    assert.deepEqual([tree.path().length, tree.isOpening], [written, false]);
  }
  const whole = new Tree(slow(0, context).reading, [], 6);
  whole.open(SAMPLING);
  assert.deepEqual([whole.path().length, whole.isOpening], [4, false]);
});

test("a click on a token of a text that is no longer there changes nothing", (context) => {
  const tree = new Tree(slow(0, context).reading, [], 6);
  tree.open(SAMPLING);
  for (const act of ["go", "take", "attend"]) tree.act({ act, at: 99, token: 1, sampling: SAMPLING });
  assert.deepEqual([tree.path().length, tree.nodes.size], [4, 4]);
});
