// Computes for the page, in a thread of its own, so that typing never waits.

import { bytesIn } from "../mounting.js";
import { Decoder } from "./decoder.js";
import { Reading } from "./reading.js";
import { tokenizer } from "./tokenizers.js";
import { FIRST_TOKENS, Tree } from "./tree.js";

/** @typedef {{ config: any, tokenizer: any, weights: string, ends: number[], whole: number | null }} Files those of a checkpoint; the weights in base64 */
/** @typedef {{ model: string, prompt: string, view: string, position: number | null, sampling: any, playing: boolean, act: string, at: number, token: number, files?: Files }} Asked */

/** @type {Record<string, Pick<Files, "ends" | "whole"> & { decoder: Decoder, tokens: import("./tokenizers.js").Tokenizer }>} */
const models = {};
/** @type {Reading | null} */
let reading = null;
/** @type {Tree | null} */
let tree = null;

/** @param {Asked} asked */
function answered({ model, prompt, files, ...asked }) {
  if (files) {
    const decoder = new Decoder(files.config.config, bytesIn(files.weights));
    models[model] = { decoder, tokens: tokenizer(files.tokenizer), ends: files.ends, whole: files.whole };
  }
  const { decoder, tokens } = models[model];
  if (reading?.model !== model || reading.prompt !== prompt) {
    reading = null;
    tree = null;
    const text = tokens.encode(prompt);
    if (!text.length) return { empty: true };
    reading = new Reading(model, decoder, tokens, prompt, text);
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
  const { ends, whole } = models[of.model],
    now = tree ?? new Tree(of, ends, whole);
  if (tree) now.act(asked);
  tree = now;
  now.open(asked.sampling);
  const { isOpening, isAtEnd } = now,
    opened = isOpening ? now.nodes.size / FIRST_TOKENS : null;
  return { payload: now.packed(asked.sampling, isOpening || (asked.playing && !isAtEnd)), isAtEnd, opened };
}

self.onmessage = ({ data }) => postMessage({ asked: data, ...answered(data) });
