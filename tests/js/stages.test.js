// The ledger's arithmetic from logits to a token, against the definitions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chiSquared, DRAWS } from "../../gptviz/components/sampling_ledger/draws.js";
import { lanesOf } from "../../gptviz/components/sampling_ledger/lanes.js";
import { entropy, Stages } from "../../gptviz/components/sampling_ledger/stages.js";

const LOGITS = [0.5, 2, -1, 2, -Infinity, 0];
const close = (a, b) => assert.ok(Math.abs(a - b) < 1e-12, `${a} is not ${b}`);
const softmax = (logits) => {
  const exps = logits.map((one) => Math.exp(one));
  return exps.map((one) => one / exps.reduce((a, b) => a + b));
};

function staged(changes = {}) {
  const stages = new Stages(Float32Array.from(LOGITS));
  stages.set({ temperature: 1, top_k: 0, top_p: 1, ...changes });
  return stages;
}

test("the likeliest comes first, of equals the smaller id", () => {
  assert.deepEqual([...staged().order], [1, 3, 0, 5, 2, 4]);
});

test("without limits it is the softmax of logits over temperature", () => {
  for (const temperature of [0.3, 1, 2]) {
    const expected = softmax(LOGITS.map((one) => one / temperature));
    staged({ temperature }).after.forEach((p, i) => close(p, expected[i]));
  }
});

test("temperature 0 leaves only the likeliest", () => {
  const stages = staged({ temperature: 0 });
  assert.deepEqual([...stages.after], [0, 1, 0, 0, 0, 0]);
  assert.equal(stages.left, 1);
  assert.equal(stages.cut(3), "temperature 0");
});

test("top-k keeps so many, top-p as few as reach their sum", () => {
  const top_k = staged({ top_k: 3 });
  assert.deepEqual(
    [...top_k.after].map((p) => p > 0),
    [true, true, false, true, false, false],
  );
  assert.equal(top_k.cut(5), "top-k");
  const usual = softmax(LOGITS);
  const top_p = staged({ top_p: usual[1] + usual[3] + 1e-6 });
  assert.equal(top_p.kept, 3);
  assert.equal(top_p.cut(5), "top-p");
  assert.equal(staged({ top_p: usual[1] + usual[3] }).kept, 2, "a sum that is reached is enough");
  close(
    [...top_p.after].reduce((a, b) => a + b),
    1,
  );
});

test("what is never drawn keeps the model's probability, comes last, and is not counted by a limit", () => {
  const stages = new Stages(Float32Array.from(LOGITS), 3); // the likeliest but one, and two more, are never drawn
  for (const chosen of [{}, { top_k: 2 }, { top_k: 5 }, { temperature: 0.5, top_p: 0.9 }, { temperature: 0 }]) {
    stages.set({ temperature: 1, top_k: 0, top_p: 1, ...chosen });
    const alone = new Stages(Float32Array.from(LOGITS.slice(0, 3)));
    alone.set({ temperature: 1, top_k: 0, top_p: 1, ...chosen });
    softmax(LOGITS).forEach((p, i) => close(stages.before[i], p));
    assert.deepEqual([...stages.order], [1, 0, 2, 3, 5, 4]);
    assert.deepEqual([...stages.after], [...alone.after, 0, 0, 0]);
    assert.equal(stages.left, alone.left);
    assert.equal(stages.cut(3), "unused");
    assert.ok(stages.draw(1 - 1e-12) < 3);
  }
});

test("a number falls on the token in whose interval it lies", () => {
  const stages = staged({ top_k: 3 });
  for (let i = 0; i <= 100; i++) {
    const number = Math.min(i / 100, 1 - 1e-12);
    const token = stages.draw(number);
    assert.ok(stages.start(token) <= number && number < stages.ends[token]);
    assert.ok(stages.after[token] > 0);
  }
});

test("entropy is that of equally likely tokens, and 0 of a sure one", () => {
  close(entropy([0.25, 0.25, 0.25, 0.25, 0]), Math.log(4));
  assert.equal(entropy([1, 0]), 0);
});

test("χ² is 0 of what was expected, and grows with what is missing", () => {
  const stages = staged({ top_k: 2 });
  const counts = Float64Array.from(stages.after, (p) => p * DRAWS);
  assert.deepEqual(chiSquared(counts, stages), { statistic: 0, freedom: 1 });
  counts[1] += 100;
  counts[3] -= 100;
  assert.equal(chiSquared(counts, stages).statistic, (2 * 100 ** 2) / (DRAWS / 2));
});

test("the bars of top-k are one together, those of top-p follow each other, and what is left is shared", () => {
  const stages = staged({ temperature: 0.7, top_k: 3, top_p: 0.9 });
  const ledger = { stages, seeds: [0.5], chosen: { log: false }, lowest: -1, cut: (token) => stages.cut(token) };
  const hot = softmax(LOGITS.map((one) => one / 0.7)),
    sum = hot[1] + hot[3] + hot[0];
  let reached = 0;
  for (const token of [1, 3]) {
    const lanes = lanesOf(token, ledger);
    close(lanes.hot[1], hot[token]);
    close(lanes["top-k"][1], hot[token] / sum);
    close(lanes["top-p"][0], reached);
    close(lanes["top-p"][1], (reached += hot[token] / sum));
    close(lanes.after[1], 0.5);
  }
  close(lanesOf(0, ledger)["top-k"][1], hot[0] / sum);
  assert.deepEqual([lanesOf(0, ledger)["top-p"][2], lanesOf(5, ledger)["top-k"][2]], ["cut", "cut"]);
});
