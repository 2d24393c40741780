// The boxes of a model, and what they are called. Nothing here draws.

import { count, percent, plural } from "../kit/text.js";

// Boxes whose names are signs.
/** @type {Record<string, string>} */
const IN_WORDS = { "⊕": "Sum", "=": "Stream", In: "Stream" };

/**
 * @typedef {[start: string, end: string]} Flow an arrow from box to box
 * @typedef {[label: string, probability: number | null]} Token
 * @typedef {"activation" | "weight" | "fixed"} Kind of a tensor: computed, learned, or by a formula
 *
 * @typedef {{
 *   name: string, kind: Kind, shape: number[], axes: string[], symbol: string, rows: [first: number, last: number] | null,
 *   parameters: number,
 * }} Piece a tensor of a box: see `BoxTensor` in gptviz/interp/reading/anatomy/boxes.py
 *
 * @typedef {{ file: string, first: number, last: number, text: string, marked: number[] }} Lines of source: see `SourceLines` there
 *
 * @typedef {{
 *   path: string, part: string, name: string, role: import("../kit/roles.js").Role, about: string, equation: string, pieces: Piece[],
 *   lines: Lines,
 * }} Box a step of the model: see `Box` there
 *
 * @typedef {object} Page the numbers of a tensor that came, all of them (`whole`) or those of a page
 * @property {string} box its path
 * @property {number} piece
 * @property {number[]} at the first index of the page along each axis
 * @property {boolean} whole
 * @property {(string[] | null)[]} labels what the indices of each axis are called, where they are more than numbers
 * @property {string} code
 *
 * @typedef {object} Payload what the server sends: see gptviz/ui/views/model_map.py
 * @property {string} text tells one text and model from another
 * @property {string} model
 * @property {number | null} step
 * @property {"decoder" | "classifier" | "encoder-decoder"} kind
 * @property {[encoder: number, decoder: number]} sizes how many blocks each stack has
 * @property {number} d_head
 * @property {number} context
 * @property {string} mask
 * @property {(number | null)[]} windows
 * @property {Record<string, number[]>} like for each stack, the block that each of its blocks is like
 * @property {string} size in words
 * @property {Box[]} boxes
 * @property {Flow[]} arrows
 * @property {Record<string, number>} counts the parameters of a block of each stack
 * @property {Token[]} tokens
 * @property {Token[]} source
 * @property {Token[]} guesses
 * @property {boolean} takes whether a guess can be taken
 * @property {boolean} spaced
 * @property {number} page the rows and columns of a page of a tensor
 * @property {string} code
 * @property {import("../kit/values.js").Declared} declared what the address may say
 * @property {[box: string, piece: number, at: number[]] | null} opened the page that was asked for last
 * @property {Page | null} tensor
 * @property {Record<string, import("../kit/view.js").Numbers>} arrays
 */

/** A probability; none where the model gives no number. @param {number | null} probability */
export function sure(probability) {
  return probability === null ? "–" : percent(probability);
}

/** A shape as `(6, 64, 32)`. @param {number[]} shape */
export function sizes(shape) {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

/** A count in few characters; small ones in full. @param {number} number */
export function short(number) {
  if (number < 100_000) return count(number);
  const [size, letter] = number >= 1e9 ? [1e9, "G"] : number >= 1e6 ? [1e6, "M"] : [1e3, "k"];
  return `${(number / size).toPrecision(3)} ${letter}`;
}

/** Where a box is: its stack ("" or "encoder."), its block (null outside of them), and its path within. @param {string} path */
export function placed(path) {
  const found = /** @type {RegExpExecArray} */ (/^(encoder\.)?(?:blocks\.(\d+)\.)?(.+)$/s.exec(path));
  return { stack: found[1] ?? "", block: found[2] === undefined ? null : Number(found[2]), within: found[3] };
}

/** @param {Box} box */
export function parametersOf(box) {
  return box.pieces.reduce((sum, piece) => sum + piece.parameters, 0);
}

/** The name of a box in words, with its block. @param {Pick<Box, "path" | "name" | "part">} box */
export function titleOf(box) {
  const { stack, block, within } = placed(box.path);
  const name = IN_WORDS[box.name] ?? box.name;
  const part = within.startsWith("cross_attention.") ? "cross-attention" : box.part.startsWith("mlp.norm") ? "MLP" : null;
  const place = [part, stack ? "encoder" : null, block === null ? null : `block ${block}`].filter(Boolean);
  return place.length ? `${name} (${place.join(", ")})` : name;
}

/** What a box is called aloud: its name, the shapes of what it computes, its parameters. @param {Box} box */
export function aloud(box) {
  const parameters = parametersOf(box);
  const computed = box.pieces.filter((piece) => piece.kind === "activation");
  const shapes = computed.map((piece) => `, ${piece.symbol} ${sizes(piece.shape)}`);
  return `${titleOf(box)}${shapes.join("")}${parameters ? `, ${plural(parameters, "parameter")}` : ""}`;
}

/** The boxes that a payload describes: for a block that was not sent, those of the block it is like, with another number. */
export class Boxes {
  /** @param {Payload} data */
  constructor(data) {
    this.data = data;
    this.known = new Map(data.boxes.map((box) => [box.path, box]));
    /** @type {Map<string, string[]>} */
    this.inside = new Map();
    for (const box of data.boxes) {
      const { stack, block, within } = placed(box.path);
      if (block === 0) this.inside.set(stack, [...(this.inside.get(stack) ?? []), within]);
    }
  }

  /** @param {string} stack */
  blocks(stack) {
    return this.data.sizes[stack ? 0 : 1];
  }

  /** The box at a path, undefined where there is none. @param {string} path @returns {Box | undefined} */
  get(path) {
    if (this.known.has(path)) return this.known.get(path);
    const { stack, block, within } = placed(path);
    const like = block === null ? undefined : this.data.like[stack][block];
    const alike = like !== undefined && this.known.get(`${stack}blocks.${like}.${within}`);
    if (!alike) return undefined;
    /** @param {string} name */
    const own = (name) => name.replace(`blocks.${like}.`, `blocks.${block}.`);
    return { ...alike, path, pieces: alike.pieces.map((piece) => ({ ...piece, name: own(piece.name) })) };
  }

  /** The box at a path that the model has. @param {string} path */
  at(path) {
    const box = this.get(path);
    if (!box) throw new Error(`the model has no ${path}`);
    return box;
  }

  /** What a block is called. @param {string} stack @param {number} block */
  blockName(stack, block) {
    return `${stack ? "Encoder block" : this.data.sizes[0] ? "Decoder block" : "Block"} ${block}`;
  }

  /** The paths of a block's boxes, as they are computed. @param {string} stack @param {number} block */
  of(stack, block) {
    return (this.inside.get(stack) ?? []).map((within) => `${stack}blocks.${block}.${within}`);
  }

  /** What flows into the boxes of a block, from where. @param {string} stack @param {number} block @returns {Flow[]} */
  arrows(stack, block) {
    const like = this.data.like[stack][block],
      prefix = `${stack}blocks.${like}.`,
      own = `${stack}blocks.${block}.`;
    return this.data.arrows
      .filter(([, end]) => end.startsWith(prefix))
      .map(([start, end]) => [start.replace(prefix, own), end.replace(prefix, own)]);
  }
}
