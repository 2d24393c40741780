// A box of the generation tree: its text flows, and breaks between words.
import { make } from "../kit/elements.js";
import { Flow } from "../kit/flow.js";

// A word longer than this may be broken, so that a text without spaces still wraps.
const LONGEST_WORD = 14;

/** The tokens of a branch: a box of flowing text. */
export class Run {
  constructor() {
    /** @type {number | null} */
    this.number = null; // of the tree that it shows
    /** @type {number[]} */
    this.nodes = [];
    /** @type {HTMLElement[]} */
    this.chips = []; // of each node its button
    /** @type {number | null} */
    this.wanted = null; // its width where there is room, once that was measured
    this.level = 0;
    this.firstNew = 0; // where the chips begin that have no level yet
    // It scrolls, which would make it a stop of the Tab key where none of its tokens is one; a tree has items and groups only.
    this.text = make("div", "text", undefined, { role: "group", tabindex: "-1" });
    this.flow = new Flow(this.text, { longest: LONGEST_WORD });
    this.foot = make("div", "wrapped foot");
    this.element = make("div", "run", [this.text, this.foot]);
  }

  /**
   * Hold these nodes; chips of those that stand there already are left alone.
   *
   * @param {number[]} nodes
   * @param {(node: number) => [HTMLElement, string][]} pieces the chips of a node and their labels, the node's button last
   * @param {boolean} isSpaced tokens are whole words
   * @returns {boolean} whether anything changed
   */
  hold(nodes, pieces, isSpaced) {
    let kept = 0;
    while (kept < nodes.length && nodes[kept] === this.nodes[kept]) kept++;
    const isChanged = kept < nodes.length || kept < this.nodes.length;
    if (isChanged) this.wanted = null;
    this.cutAt(kept);
    this.flow.isSpaced = isSpaced;
    for (const node of nodes.slice(kept)) {
      for (const [chip, label] of pieces(node)) {
        this.flow.add(chip, label);
        this.chips[this.nodes.length] = chip;
      }
      this.nodes.push(node);
    }
    return isChanged;
  }

  /** Say how many forks lie before it. @param {number} level */
  setLevel(level) {
    const first = level === this.level ? this.firstNew : 0;
    for (const chip of this.chips.slice(first)) chip.setAttribute("aria-level", String(level));
    this.level = level;
    this.firstNew = this.chips.length;
  }

  /** Forget all but the first `kept` nodes. @param {number} kept */
  cutAt(kept) {
    const [first] = this.chips.splice(kept);
    this.nodes.length = Math.min(kept, this.nodes.length);
    this.firstNew = Math.min(kept, this.firstNew);
    if (!first) return;
    if (kept) this.flow.cut(first);
    else this.text.replaceChildren();
  }
}
