// Gradients and steps of training by JavaScript, for tests/takehome/test_live_training.py, which compares them with torch's. On
// standard input: the path of a model.safetensors, its config, rows of tokens, and for steps their batches and a recipe.

import { readFileSync, writeFileSync } from "node:fs";
import { Decoder } from "../../gptviz/takehome/live/decoder.js";
import { Gradients } from "../../gptviz/takehome/live/gradients.js";
import { safetensors, tensorsIn } from "../../gptviz/takehome/live/safetensors.js";
import { shapesOf } from "../../gptviz/takehome/live/shapes.js";
import { Training } from "../../gptviz/takehome/live/training.js";

const { weights, config, rows, batches, recipe, out } = JSON.parse(readFileSync(0, "utf-8"));
const shapes = shapesOf(config);
const tensors = tensorsIn(new Uint8Array(readFileSync(weights)), shapes);
if (rows) {
  const gradients = new Gradients(new Decoder(config, tensors));
  const counted = rows.flat().length - rows.length;
  const losses = rows.map((row) => gradients.add(row.slice(0, -1), row.slice(1), 1 / counted));
  writeFileSync(out, safetensors(gradients.tensors));
  console.log(JSON.stringify({ loss: losses.reduce((a, b) => a + b) / counted }));
} else {
  const training = new Training(config, tensors, recipe);
  const losses = batches.map((batch) => training.advance(batch));
  writeFileSync(out, safetensors(training.decoder.tensors));
  console.log(JSON.stringify({ losses, evaluated: training.evaluate(batches[0]) }));
}
