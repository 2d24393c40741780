// The boxes of a model, and what they are called. Nothing here draws.

import { count, percent, plural } from "../kit/text.js";

// Boxes whose names are signs.
/** @type {Record<string, string>} */
const IN_WORDS = { "⊕": "Sum", "=": "Stream", In: "Stream" };

/** @typedef {[start: string, end: string, shape: string]} Flow an arrow from box to box, and what flows in it */

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

/** @param {any} box @returns {number} */
export function parametersOf(box) {
  return box.pieces.reduce((/** @type {number} */ sum, /** @type {any} */ piece) => sum + piece.parameters, 0);
}

/** The name of a box in words, with its block. @param {any} box */
export function titleOf(box) {
  const { stack, block, within } = placed(box.path);
  const name = IN_WORDS[box.name] ?? box.name;
  const part = within.startsWith("cross_attention.") ? "cross-attention" : box.part.startsWith("mlp.norm") ? "MLP" : null;
  const place = [part, stack ? "encoder" : null, block === null ? null : `block ${block}`].filter(Boolean);
  return place.length ? `${name} (${place.join(", ")})` : name;
}

/** What a box is called aloud: its name, the shapes of what it computes, its parameters. @param {any} box */
export function aloud(box) {
  const parameters = parametersOf(box);
  const computed = box.pieces.filter((/** @type {any} */ piece) => piece.kind === "activation");
  const shapes = computed.map((/** @type {any} */ piece) => `, ${piece.symbol} ${sizes(piece.shape)}`);
  return `${titleOf(box)}${shapes.join("")}${parameters ? `, ${plural(parameters, "parameter")}` : ""}`;
}

/** The boxes that a payload describes: of a block that did not travel, those of the block it is like, with another number. */
export class Boxes {
  /** @param {any} data the payload */
  constructor(data) {
    this.data = data;
    /** @type {Map<string, any>} */
    this.known = new Map(data.boxes.map((/** @type {any} */ box) => [box.path, box]));
    /** @type {Map<string, string[]>} */
    this.inside = new Map();
    for (const box of data.boxes) {
      const { stack, block, within } = placed(box.path);
      if (block === 0) this.inside.set(stack, [...(this.inside.get(stack) ?? []), within]);
    }
  }

  /** @param {string} stack @returns {number} */
  blocks(stack) {
    return this.data.sizes[stack ? 0 : 1];
  }

  /** @param {string} path @returns {any} */
  get(path) {
    if (this.known.has(path)) return this.known.get(path);
    const { stack, block, within } = placed(path);
    const like = block === null ? undefined : this.data.like[stack][block];
    const alike = like !== undefined && this.known.get(`${stack}blocks.${like}.${within}`);
    if (!alike) return undefined;
    /** @param {string} name */
    const own = (name) => name.replace(`blocks.${like}.`, `blocks.${block}.`);
    return { ...alike, path, pieces: alike.pieces.map((/** @type {any} */ piece) => ({ ...piece, name: own(piece.name) })) };
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
      .filter((/** @type {Flow} */ [, end]) => end.startsWith(prefix))
      .map((/** @type {Flow} */ [start, end, shape]) => [
        start.startsWith(prefix) ? own + start.slice(prefix.length) : start,
        own + end.slice(prefix.length),
        shape,
      ]);
  }
}
