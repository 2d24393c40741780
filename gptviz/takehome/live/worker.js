// Computes for the page, in a thread of its own, so that typing never waits.

import { bytesIn } from "../mounting.js";
import { Decoder } from "./decoder.js";
import { Reading } from "./reading.js";
import { tokenizer } from "./tokenizers.js";

/** @typedef {{ config: any, tokenizer: any, weights: string }} Files those of a checkpoint; the weights in base64 */
/** @typedef {{ model: string, prompt: string, view: string, position: number | null, files?: Files, take?: number }} Asked `take` is a token to go on with */

/** @type {Record<string, { decoder: Decoder, tokens: import("./tokenizers.js").Tokenizer }>} */
const models = {};
/** @type {Reading | null} */
let reading = null;

/** @param {Asked} asked */
function answered({ model, prompt, view, position, files, take }) {
  if (files)
    models[model] = { decoder: new Decoder(files.config.config, bytesIn(files.weights)), tokens: tokenizer(files.tokenizer) };
  const { decoder, tokens } = models[model];
  if (!tokens.encode(prompt).length) return { empty: true };
  if (reading?.model !== model || reading.prompt !== prompt) reading = new Reading(model, decoder, tokens, prompt);
  const last = reading.ids.length - 1,
    at = Math.min(position ?? last, last);
  if (take !== undefined) return { prompt: reading.with(at, take) };
  const found = {
    tokens: reading.tokens(at),
    missing: reading.text.length - reading.ids.length,
    likeliest: reading.likeliest(at),
  };
  if (view === "next_token") return { ...found, payload: reading.ledger(at) };
  if (view === "lens") return { ...found, payload: reading.lens() };
  return { ...found, payload: decoder.blocks.length ? reading.attention() : null };
}

self.onmessage = ({ data }) => postMessage({ asked: data, ...answered(data) });
