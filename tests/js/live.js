// What the page "Try it" computes of a model, for tests/takehome/test_live.py, which compares it with torch. On standard input: the
// folder of a checkpoint, prompts, how many tokens are written after each, and texts to cut.

import { readFileSync } from "node:fs";
import { pack, shaped } from "../../gptviz/components/kit/pack.js";
import { Decoder } from "../../gptviz/takehome/live/decoder.js";
import { uniform } from "../../gptviz/takehome/live/draws.js";
import { ACTIVATIONS, NORMS, POSITIONS, RESIDUALS } from "../../gptviz/takehome/live/parts.js";
import { Reading } from "../../gptviz/takehome/live/reading.js";
import { tensorsIn } from "../../gptviz/takehome/live/safetensors.js";
import { shapesOf } from "../../gptviz/takehome/live/shapes.js";
import { TOKENIZERS, tokenizer } from "../../gptviz/takehome/live/tokenizers.js";
import { Tree } from "../../gptviz/takehome/live/tree.js";

const { folder, prompts, steps, texts = [] } = JSON.parse(readFileSync(0, "utf-8"));
const json = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf-8"));
const SAMPLING = { temperature: 0.8, top_k: 5, top_p: 0.9, seed: 3 };
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const config = json("config").config;
const weights = new Uint8Array(readFileSync(`${folder}/model.safetensors`));
const decoder = new Decoder(config, tensorsIn(weights, shapesOf(config)));
const tokens = tokenizer(json("tokenizer"));

function greedy(ids, count) {
  const text = [...ids];
  for (let i = 0; i < count; i++) {
    const logits = decoder.read(text).slice(-decoder.vocabSize);
    text.push(logits.indexOf(Math.max(...logits)));
  }
  return text.slice(ids.length);
}

/** A text that was drawn, and a branch that goes on with another token at its second place. */
function grown(reading) {
  const tree = new Tree(reading, [], null);
  for (let i = 0; i < 6; i++) tree.act({ act: "step", sampling: SAMPLING });
  tree.act({ act: "take", at: 1, token: 0, sampling: SAMPLING });
  for (let i = 0; i < 2; i++) tree.act({ act: "step", sampling: SAMPLING });
  return tree.packed(SAMPLING, false);
}

const answers = prompts.map((prompt, number) => {
  const ids = tokens.encode(prompt),
    reading = new Reading("name", decoder, tokens, prompt);
  const patterns = decoder.blocks.map((block) => reading.seen[`${block}.attention.pattern`]);
  const arrays = Object.fromEntries(patterns.map((pattern, i) => [`pattern ${i}`, shaped(pattern)]));
  return {
    ids,
    computed: base64(pack({}, { logits: shaped(reading.logits), ...arrays })),
    ledger: base64(reading.ledger(reading.ids.length - 1)),
    lens: base64(reading.lens()),
    attention: patterns.length ? base64(reading.attention()) : null,
    tree: base64(grown(reading)),
    written: greedy(ids, steps[number]),
  };
});
const parts = { norm: NORMS, residual: RESIDUALS, positions: POSITIONS, activation: ACTIVATIONS, tokenizers: TOKENIZERS };
const tables = Object.fromEntries(Object.entries(parts).map(([name, table]) => [name, Object.keys(table)]));
const numbers = [0, 1, 99].map((seed) => [0, 7, 255, 12345].map((position) => uniform(seed, position)));
const cut = texts.map((text) => tokens.encode(text));
console.log(JSON.stringify({ answers, labels: tokens.labels, tables, numbers, cut }));
