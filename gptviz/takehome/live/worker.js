// Computes for the page, in a thread of its own, so that typing never waits.

import { bytesIn } from "../mounting.js";
import { Decoder } from "./decoder.js";
import { filesOf, opened, possibleName } from "./opening.js";
import { Reading } from "./reading.js";
import { Run } from "./run.js";
import { tensorsIn } from "./safetensors.js";
import { shapesOf } from "./shapes.js";
import { tokenizer } from "./tokenizers.js";
import { FIRST_TOKENS, Tree } from "./tree.js";
import { zipped } from "./zip.js";

/** @typedef {Record<string, import("./parts.js").Tensor>} Weights */
/** @typedef {{ config: any, tokenizer: any, weights: string, ends: number[], whole: number | null }} Files those of a checkpoint; the weights in base64 */
/** @typedef {{ model: string, prompt: string, view: string, position: number | null, step: number | null, sampling: any, playing: boolean, act: string, at: number, token: number, files?: Files }} Asked */
/** @typedef {{ config: any, tokens: import("./tokenizers.js").Tokenizer, ends: number[], whole: number | null, weights: (step: number | null) => Weights }} Model `weights`: those of the snapshot after so many steps, null for those of model.safetensors */

const SLICE = 60; // milliseconds of training between two messages

/** @type {Map<string, Model>} */
const models = new Map();
/** The model that was asked for last. @type {{ model: string, step: number | null, decoder: Decoder } | null} */
let latest = null;
/** @type {Reading | null} */
let reading = null;
/** @type {Tree | null} */
let tree = null;
/** By the name of its model. @type {Map<string, Run>} */
const runs = new Map();
/** The names that the page knows already, so that another model gets another name. @type {Set<string>} */
const taken = new Set();

/** A name that no other model has. @param {string} name */
function freshName(name) {
  let fresh = name;
  for (let number = 2; taken.has(fresh); number++) fresh = `${name}-${number}`;
  taken.add(fresh);
  return fresh;
}

/** The model of the files of a checkpoint that ships. @param {Files} files @returns {Model} */
function shipped({ config: { config }, tokenizer: fields, weights, ends, whole }) {
  return { config, tokens: tokenizer(fields), ends, whole, weights: () => tensorsIn(bytesIn(weights), shapesOf(config)) };
}

/** @param {Asked} asked */
function answered({ model, prompt, step, files, ...asked }) {
  if (files) models.set(model, shipped(files));
  const of = /** @type {Model} */ (models.get(model));
  if (latest?.model !== model || latest.step !== step) {
    latest = { model, step, decoder: new Decoder(of.config, of.weights(step)) };
    reading = null;
  }
  const { decoder } = latest;
  if (reading?.prompt !== prompt) {
    reading = null;
    tree = null;
    const text = of.tokens.encode(prompt);
    if (!text.length) return { empty: true };
    reading = new Reading(model, decoder, of.tokens, prompt, text, step);
  }
  const last = reading.ids.length - 1,
    at = Math.min(asked.position ?? last, last);
  if (asked.act === "append") return { prompt: reading.with(at, asked.token) };
  const missing = reading.text.length - reading.ids.length,
    { lacking } = reading;
  return { tokens: reading.tokens(at), last, missing, lacking, likeliest: reading.likeliest(at), ...seen(reading, at, asked) };
}

/** What the view that is looked at is given. @param {Reading} of @param {number} at @param {any} asked */
function seen(of, at, asked) {
  if (asked.view === "next_token") return { payload: of.ledger(at) };
  if (asked.view === "lens") return { payload: of.lens() };
  if (asked.view === "attention") return { payload: of.decoder.blocks.length ? of.attention() : null };
  const { ends, whole } = /** @type {Model} */ (models.get(of.model)),
    now = tree ?? new Tree(of, ends, whole);
  if (tree) now.act(asked);
  tree = now;
  now.open(asked.sampling);
  const { isOpening, isAtEnd } = now,
    opening = isOpening ? now.nodes.size / FIRST_TOKENS : null;
  return { payload: now.packed(asked.sampling, isOpening || (asked.playing && !isAtEnd)), isAtEnd, opened: opening };
}

/** Train a model, slice by slice, so that what is asked meanwhile is answered. @param {import("./run.js").Asked & { name: string }} asked */
async function learn(asked) {
  const run = new Run(asked),
    name = freshName(possibleName(asked.name)),
    { config, tokens, ends } = run;
  runs.set(name, run);
  const weights = (/** @type {number | null} */ step) => /** @type {Weights} */ (run.snapshots.get(Number(step)));
  models.set(name, { config, tokens, ends, whole: null, weights });
  const tell = () => postMessage({ run: { name, prompt: run.prompt, kept: [...run.snapshots.keys()], ...run.report } });
  tell();
  while (!run.isOver) {
    await new Promise((done) => setTimeout(done));
    run.advance(SLICE);
    tell();
  }
}

/** Open a model of a reader's own. @param {{ path: string, file: Blob }[]} given @param {Record<string, import("./opening.js").Field>} fields @param {string} prompt its first one, if it knows it */
async function open(given, fields, prompt) {
  const { files, name: called } = await filesOf(given),
    { config, tokens, ends, whole, steps } = opened(files, fields),
    name = freshName(called),
    shapes = shapesOf(config),
    weights = (/** @type {number | null} */ step) => tensorsIn(/** @type {Uint8Array} */ (steps.get(step)), shapes);
  models.set(name, { config, tokens, ends, whole, weights });
  const kept = [...steps.keys()].filter((step) => step !== null).sort((a, b) => a - b);
  const isKnown = prompt && !tokens.lacking(prompt).length,
    letter = tokens.texts.find((text) => /\p{L}/u.test(text)) ?? tokens.texts[0];
  postMessage({ own: { name, prompt: isKnown ? prompt : letter.trimStart(), kept } });
}

/** The files that a reader saves of a model that was trained here. @param {{ name: string, source?: string, version: string }} asked `source`: of the plain twin */
function save({ name, source, version }) {
  const run = /** @type {Run} */ (runs.get(name));
  const files = Object.entries(run.files(version)).map(([file, content]) => [`${name}/${file}`, content]);
  const bytes = zipped(source === undefined ? Object.fromEntries(files) : run.twin(name, source));
  postMessage({ saved: { file: `${name}${source === undefined ? "" : "-python"}.zip`, bytes } });
}

self.onmessage = ({ data }) => {
  const refuse = (/** @type {Error} */ error) => postMessage({ refused: error.message });
  if (data.names) for (const name of data.names) taken.add(name);
  else if (data.learn) learn(data.learn).catch(refuse);
  else if (data.stop) runs.get(data.stop)?.stop();
  else if (data.open) open(data.open, data.fields, data.prompt).catch(refuse);
  else if (data.save) save(data.save);
  else postMessage({ asked: data, ...answered(data) });
};
