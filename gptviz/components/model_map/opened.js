// The open part: a block, a box, one of the box's tensors, and a page of it. The address holds it. Nothing here draws.

import { placed } from "./boxes.js";

/** @typedef {{ box: string | null, block: string | null, tensor: number, head: number, sizes: boolean }} Choice the address has of it */

export class Opened {
  constructor() {
    /** Of the model that is shown. @type {import("./boxes.js").Boxes} */
    this.boxes = /** @type {any} */ (undefined); // until the first payload
    /** The stack of the block that is drawn below, "" or "encoder.", and its number. */
    this.stack = "";
    this.block = 0;
    /** The path of the open box. @type {string | null} */
    this.path = null;
    /** Which of its tensors is shown. */
    this.piece = 0;
    /** The first index shown along each axis of the tensor. @type {number[]} */
    this.at = [];
    /** The head that a link asks for, until it is shown. @type {number | null} */
    this.askedHead = null;
    this.hasSizes = false; // whether the drawing says shapes, counts and the names of tensors
  }

  /** The open box. */
  get box() {
    return this.path === null ? null : this.boxes.get(this.path);
  }

  /** The tensor that is shown. */
  get tensor() {
    return this.box?.pieces[this.piece];
  }

  /** The head whose numbers are shown, null if there is none to choose. */
  get head() {
    return /^(key )?head$/.test(this.tensor?.axes[0] ?? "") ? this.at[0] : null;
  }

  /** What a link asks for; `fit` then leaves out what the box lacks. @param {Choice} asked */
  take({ box, block, tensor, head, sizes }) {
    this.hasSizes = sizes;
    const [stack, number] = block?.startsWith("encoder.") ? ["encoder.", block.slice("encoder.".length)] : ["", block];
    Object.assign(this, { stack, block: Number(number ?? 0), path: box, piece: tensor, askedHead: head });
  }

  /** After another model: what it lacks is not open. */
  fit() {
    const { boxes } = this;
    if (!this.box) this.path = null;
    if (this.path !== null) {
      const { stack, block } = placed(this.path);
      if (block !== null) Object.assign(this, { stack, block });
      if (!this.tensor) this.piece = 0;
      this.at = this.shape.map((size, axis) => Math.min(this.at[axis] ?? 0, size - 1));
    }
    if (!boxes.blocks(this.stack)) this.stack = boxes.blocks("") || !boxes.blocks("encoder.") ? "" : "encoder.";
    this.block = Math.max(0, Math.min(this.block, boxes.blocks(this.stack) - 1));
  }

  /** What is open, as a link asks for it. @returns {Choice} */
  get chosen() {
    const { boxes, stack, block, path, piece } = this;
    return {
      box: path,
      block: path !== null || !boxes.blocks(stack) ? null : `${stack}${block}`,
      tensor: path === null ? 0 : piece,
      head: this.head ?? 0,
      sizes: this.hasSizes,
    };
  }

  /** Open a block, and in place of the open box the same one of this block. @param {string} stack @param {number} block */
  openBlock(stack, block) {
    Object.assign(this, { stack, block });
    if (this.path === null) return;
    const { block: before, within } = placed(this.path);
    if (before === null) return;
    const alike = `${stack}blocks.${block}.${within}`;
    this.path = this.boxes.get(alike) ? alike : null;
  }

  /**
   * Open a box.
   *
   * @param {string} path
   * @param {number | null} head the one to show; null leaves it
   * @returns {boolean} whether another block is open now
   */
  open(path, head) {
    const isOther = path !== this.path;
    if (isOther) this.piece = 0;
    this.path = path;
    const dimensions = this.shape.length;
    if (isOther || this.at.length !== dimensions) this.at = new Array(dimensions).fill(0);
    const wanted = head ?? this.askedHead ?? -1;
    if (this.head !== null && Number.isInteger(wanted) && wanted >= 0 && wanted < this.shape[0]) this.at[0] = wanted;
    this.askedHead = null;
    const { stack, block } = placed(path);
    if (block === null || (stack === this.stack && block === this.block)) return false;
    Object.assign(this, { stack, block });
    return true;
  }

  /** The numbers of the tensor along each axis. */
  get shape() {
    return this.tensor?.shape ?? [];
  }

  /** Show another tensor of the box from its beginning on; the head stays. @param {number} piece */
  choosePiece(piece) {
    const { head } = this;
    this.piece = piece;
    this.at = new Array(this.shape.length).fill(0);
    if (head && this.head !== null) this.at[0] = Math.min(head, this.shape[0] - 1);
  }

  /** Show another page of the tensor. @param {number} axis @param {number} to its first index */
  move(axis, to) {
    this.at[axis] = Math.max(0, Math.min(to, this.shape[axis] - 1));
  }

  /** Whether these are the numbers to show. @param {{ box: string, piece: number, at: number[], whole: boolean }} tensor */
  isOf(tensor) {
    const isPage = tensor.whole || tensor.at.every((index, i) => index === this.at[i]);
    return tensor.box === this.path && tensor.piece === this.piece && isPage;
  }
}
