// A box of the generation tree: its text flows, and breaks between words.

import { make } from "../kit/elements.js";
import { SPOKEN } from "../kit/text.js";

// A word longer than this may be broken, so that a text without spaces still wraps.
const LONGEST_WORD = 14;

/** A run of tokens without a branch: a box of flowing text. */
export class Run {
  constructor(start) {
    this.start = start;
    this.nodes = [];
    this.chips = [];
    this.wanted = null; // its width where there is room, once that was measured
    this.element = make("div", "run");
    this.text = make("div", "text");
    this.foot = make("div", "foot");
    this.element.append(this.text, this.foot);
  }

  /** Hold these nodes; chips of those that stand there already are left alone. `pieces(node)` gives chips and their labels, that
   *  which stands for the node last. */
  hold(nodes, pieces, spaced) {
    let kept = 0;
    while (kept < nodes.length && nodes[kept] === this.nodes[kept]) kept++;
    const changed = kept < nodes.length || kept < this.nodes.length;
    if (changed) this.wanted = null;
    this.cutAt(kept);
    for (const node of nodes.slice(kept)) {
      for (const [chip, label] of pieces(node)) {
        this.add(chip, label, spaced);
        this.chips[this.nodes.length] = chip;
      }
      this.nodes.push(node);
    }
    return changed;
  }

  /** Forget all but the first `kept` nodes. */
  cutAt(kept) {
    const [first] = kept ? this.chips.splice(kept) : this.chips.splice(0);
    this.nodes.length = Math.min(kept, this.nodes.length);
    if (!first) return;
    if (!kept) return this.text.replaceChildren();
    const word = first.parentElement;
    while (word.nextSibling) word.nextSibling.remove();
    while (first.nextSibling) first.nextSibling.remove();
    first.remove();
    if (!word.hasChildNodes()) word.remove();
  }

  add(chip, label, spaced) {
    const last = this.text.lastElementChild?.lastElementChild?.textContent || "⏎";
    const ends = /[␣⏎⇥]$/.test(last) || (/^[␣⏎⇥]/.test(label) && !(label in SPOKEN));
    let word = this.text.lastElementChild;
    if (!word || spaced || ends || word.textContent.length + label.length > LONGEST_WORD) {
      word = make("span", spaced ? "word spaced" : "word");
      this.text.append(word);
    }
    word.append(chip);
    if (label.endsWith("⏎") && !spaced) word.append(make("br"));
  }
}
