// Models from elsewhere: the files of one of gptviz, from a zip file or a folder. Each is read whole or refused by name.

import { tensorsIn } from "./safetensors.js";
import { shapesOf } from "./shapes.js";
import { lettersOfBytes, TOKENIZERS, tokenizer } from "./tokenizers.js";
import { checkPaths, entriesOf, unpackedEntry } from "./zip.js";

/** @typedef {{ default: unknown, kind: string, optional: boolean, low: number | null, high: number | null, low_excluded: boolean, high_excluded: boolean, choices: string[], computed: unknown[] | null }} Field of a config: what it may be, and which values are computed here (null: all) */
/** @typedef {{ config: Record<string, any>, tokens: import("./tokenizers.js").Tokenizer, ends: number[], whole: number | null, steps: Map<number | null, Uint8Array> }} Opened `steps`: the files of the weights, by the step of a snapshot, null for the model itself */

export const LARGEST = 30_000_000; // bytes of a model
const LONGEST = /** @type {Record<string, number>} */ ({ "config.json": 2 ** 16, "card.json": 2 ** 21 });
const MOST_KEPT = 2 ** 25; // keys and values that a text of a whole context has
const NEEDED = ["config.json", "tokenizer.json", "model.safetensors"];
const SNAPSHOT = /^snapshots\/([0-9]{8,12})\.safetensors$/;
const OF_GPTVIZ = "“gptviz export NAME --out model.zip” writes one";
const tooLarge = (/** @type {string} */ what) => new Error(`${what} has more than ${LARGEST / 1e6} MB: gptviz itself opens it`);

/** The files of the one model in a zip file, or among files of a folder, by their names beside its config.json. @param {{ path: string, file: Blob }[]} given */
export async function filesOf(given) {
  const isZip = given.length === 1 && /\.zip$/i.test(given[0].path);
  if (isZip && given[0].file.size > LARGEST) throw tooLarge("it");
  const zip = isZip ? new Uint8Array(await given[0].file.arrayBuffer()) : null;
  const found = zip
    ? entriesOf(zip).map((entry) => ({ path: entry.name, size: entry.size, read: () => unpackedEntry(zip, entry) }))
    : given.map(({ path, file }) => ({ path, size: file.size, read: async () => new Uint8Array(await file.arrayBuffer()) }));
  if (!zip) checkPaths(found.map(({ path }) => ({ name: path })));
  const paths = new Set(found.map(({ path }) => path));
  const configs = [...paths].filter((path) => /(^|\/)config\.json$/.test(path) && !path.startsWith("__MACOSX/"));
  const folders = configs.map((path) => path.slice(0, -"config.json".length)).sort((a, b) => depth(a) - depth(b));
  const models = folders.filter((one) => paths.has(`${one}model.safetensors`)),
    [at, other] = models;
  if (other !== undefined && depth(at) === depth(other))
    throw new Error(`it holds several models (${at}, ${other}): open one of them`);
  const folder = at ?? folders[0];
  if (folder === undefined) throw new Error(`it holds no model of gptviz, which has a config.json: ${OF_GPTVIZ}`);
  const lacks = NEEDED.find((name) => !paths.has(folder + name));
  if (lacks) throw new Error(`it lacks ${lacks}: copy the whole folder again`);
  if (paths.has(`${folder}adapter.json`)) throw new Error("it is an adapter, which needs its base: gptviz itself opens it");
  /** @type {Map<string, Uint8Array>} */
  const files = new Map();
  let total = 0;
  for (const { path, size, read } of found) {
    const name = path.slice(folder.length);
    if (!path.startsWith(folder) || !(name in LONGEST || NEEDED.includes(name) || SNAPSHOT.test(name))) continue;
    if (size > (LONGEST[name] ?? LARGEST)) throw new Error(`${name} has ${size} bytes: more than such a file may have`);
    total += size;
    if (total > LARGEST) throw tooLarge("what it holds");
    files.set(name, await read());
  }
  const called =
    folder.split("/").at(-2) ??
    given[0].path
      .split("/")
      .at(isZip ? -1 : 0)
      ?.replace(/\.[^.]*$/, "") ??
    "";
  return { files, name: possibleName(called) };
}

/** How deep a folder lies. @param {string} folder */
const depth = (folder) => folder.split("/").length;

/** A name that a model can have. @param {string} name */
export const possibleName = (name) =>
  name
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[._-]+$/g, "")
    .slice(0, 60)
    .replace(/\.+$/, "") || "model";

/** A model from its files, all of which fit each other. @param {Map<string, Uint8Array>} files @param {Record<string, Field>} fields those of a config @returns {Opened} */
export function opened(files, fields) {
  const config = configIn(json(files, "config.json"), fields),
    shapes = shapesOf(config),
    tokens = tokensIn(json(files, "tokenizer.json"), config.vocab_size),
    card = files.has("card.json") ? json(files, "card.json") : {};
  /** @type {Opened["steps"]} */
  const steps = new Map([[null, need(files, "model.safetensors")]]);
  for (const [name, file] of files) {
    const step = SNAPSHOT.exec(name)?.[1];
    if (step !== undefined) steps.set(Number(step), file);
    if (name.endsWith(".safetensors")) tensorsIn(file, shapes, name); // what they are is read once more when they are shown
  }
  const ends = [card.end_tokens ?? []].flat().filter((/** @type {unknown} */ id) => Number.isInteger(id) && Number(id) >= 0);
  return { config, tokens, ends, whole: null, steps };
}

/** @param {Map<string, Uint8Array>} files @param {string} name */
const need = (files, name) => /** @type {Uint8Array} */ (files.get(name));

/** A file that is a JSON object. @param {Map<string, Uint8Array>} files @param {string} name @returns {Record<string, any>} */
function json(files, name) {
  let content = null;
  try {
    content = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(need(files, name)));
  } catch {
    // what it is instead is said below
  }
  if (content === null || typeof content !== "object" || Array.isArray(content))
    throw new Error(`${name} is not a JSON object: copy it again`);
  return content;
}

/** A config, every field of which is known and has a value that is computed here. @param {Record<string, any>} content @param {Record<string, Field>} fields */
function configIn({ format, config: given }, fields) {
  if (format === undefined) throw new Error(`its config.json is of another program: “gptviz import” opens it, and ${OF_GPTVIZ}`);
  if (format !== 1)
    throw new Error(`its config.json is of format ${shown(format)}, this page reads 1: save it again with this version`);
  if (given === null || typeof given !== "object") throw new Error("its config.json has no config: copy it again");
  const strange = Object.keys(given).find((name) => !Object.hasOwn(fields, name));
  if (strange !== undefined) throw new Error(`its config.json has the unknown field ${shown(strange)}`);
  /** @type {Record<string, any>} */
  const config = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = name in given ? given[name] : field.default;
    if (value === undefined) throw new Error(`its config.json lacks ${name}`);
    const legacy = name === "qk_norm" && typeof value === "boolean";
    config[name] = legacy ? ["none", "shared"][Number(value)] : value;
    if (!isPossible(config[name], field)) throw new Error(`its config.json has ${name} ${shown(value)}, which no model can have`);
    if (field.computed && !field.computed.includes(config[name]))
      throw new Error(`this page lacks a part of it: ${name} ${shown(value)}; gptviz itself opens it`);
  }
  const { n_head, d_model, n_layer, context_length, n_kv_head, d_head, positions } = config,
    keyHeads = n_kv_head ?? n_head,
    size = d_head ?? d_model / n_head;
  if (!Number.isInteger(size) || n_head % keyHeads || (positions === "rotary" && size % 2))
    throw new Error(
      `its config.json has sizes that do not fit: d_model ${d_model}, n_head ${n_head}, n_kv_head ${keyHeads}, d_head ${size}`,
    );
  if (n_layer * context_length * keyHeads * size > MOST_KEPT)
    throw new Error(`its context of ${context_length} tokens takes more memory than a page should: gptviz itself opens it`);
  return config;
}

/** A value from a file, in a message. @param {unknown} value */
const shown = (value) => `“${String(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 60)}”`;

/** @param {any} value @param {Field} field */
function isPossible(value, { kind, optional, choices, low, high, low_excluded, high_excluded }) {
  if (value === null) return optional;
  if (kind === "switch") return typeof value === "boolean";
  if (kind === "choice") return choices.includes(value);
  if (kind === "text") return typeof value === "string" && value.length <= 256;
  if (!(kind === "whole" ? Number.isInteger(value) : Number.isFinite(value))) return false;
  const isLow = low !== null && (low_excluded ? value <= low : value < low);
  return !isLow && !(high !== null && (high_excluded ? value >= high : value > high));
}

/** The lists of pieces in each kind of tokenizer.json. @type {Record<string, string>} */
const LISTS = { characters: "characters", symbols: "symbols", "cased words": "words" };
const UNUSUAL = ["added_tokens", "normalizer", "post_processor"];

/** @param {Record<string, any>} fields of tokenizer.json @param {number} size of the vocabulary */
function tokensIn(fields, size) {
  const kind = fields.model ? "bpe" : fields.kind;
  if (!Object.hasOwn(TOKENIZERS, kind)) throw new Error(`this page has no tokenizer ${shown(kind)}; gptviz itself opens it`);
  if (kind === "bpe") checkMerges(fields);
  else checkList(fields[LISTS[kind]], kind, fields.unknown);
  const tokens = tokenizer(fields);
  if (tokens.labels.length !== size)
    throw new Error(`its tokenizer has ${tokens.labels.length} tokens, the model ${size}: they are not from one model`);
  return tokens;
}

const bad = (/** @type {string} */ why) => new Error(`its tokenizer.json ${why}: copy it again`);

/** @param {any} list @param {string} kind @param {any} unknown */
function checkList(list, kind, unknown) {
  if (!Array.isArray(list) || !list.length || !list.every((piece) => typeof piece === "string" && piece))
    throw bad(`has no list of ${kind}`);
  if (new Set(list).size < list.length) throw bad("has a piece twice");
  if (kind !== "characters") return;
  if (![...list, ...(unknown === null ? [] : [unknown])].every((one) => typeof one === "string" && [...one].length === 1))
    throw bad("has a piece that is not one character");
  const points = list.map((one) => one.codePointAt(0));
  if (points.some((point, i) => i && point <= points[i - 1])) throw bad("has characters that are not sorted");
}

/** Byte pairs as GPT-2 has them, and no others. @param {Record<string, any>} fields */
function checkMerges({ model, pre_tokenizer: cut, ...others }) {
  const stage = UNUSUAL.find((name) => (Array.isArray(others[name]) ? others[name].length : others[name]));
  const isUsual = model.type === "BPE" && cut?.type === "ByteLevel" && cut.use_regex !== false && !cut.add_prefix_space;
  if (stage || !isUsual || model.ignore_merges)
    throw new Error(`this page has no tokenizer with ${stage ?? "byte pairs other than GPT-2’s"}`);
  const { vocab, merges } = model;
  if (vocab === null || typeof vocab !== "object" || !Array.isArray(merges)) throw bad("has no vocabulary");
  const ids = Object.values(vocab);
  if (new Set(ids).size < ids.length || !ids.every((id) => Number.isInteger(id) && id >= 0 && id < ids.length))
    throw bad("numbers its tokens otherwise than one after the other");
  const letters = new Set(lettersOfBytes());
  if (![...letters].every((letter) => Object.hasOwn(vocab, letter))) throw bad("has no token for some byte");
  if (!Object.keys(vocab).every((token) => token && [...token].every((letter) => letters.has(letter))))
    throw bad("has a token that is no bytes");
  for (const merge of merges) {
    const parts = typeof merge === "string" ? merge.split(" ") : merge;
    const isPair = Array.isArray(parts) && parts.length === 2 && parts.every((part) => Object.hasOwn(vocab, part));
    if (!isPair || !Object.hasOwn(vocab, parts.join(""))) throw bad(`merges ${shown(merge)}, which are no tokens`);
  }
}
