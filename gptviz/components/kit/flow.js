// Tokens as flowing text: where its lines break.

import { make } from "./elements.js";
import { SPOKEN } from "./text.js";

/**
 * Whether a line may break between two tokens that follow each other: after a newline, and between words. A token of only
 * white space stays with the word before it.
 *
 * @param {string} before
 * @param {string} label
 */
export function breaksBetween(before, label) {
  if (before.endsWith("⏎")) return true;
  return !(label in SPOKEN) && (/[␣⇥]$/.test(before) || /^[␣⏎⇥]/.test(label));
}

/** Chips in words: lines break between the words of `element` and after a newline. */
export class Flow {
  /**
   * @param {HTMLElement} element
   * @param {object} [how]
   * @param {number} [how.longest] characters of a word, so that a text without spaces still wraps
   * @param {boolean} [how.isSpaced] every token is a whole word
   */
  constructor(element, { longest = 24, isSpaced = false } = {}) {
    this.element = element;
    this.longest = longest;
    this.isSpaced = isSpaced;
  }

  /** Put a chip at the end. @param {HTMLElement} chip @param {string} label its token */
  add(chip, label) {
    const { element, longest, isSpaced } = this;
    let word = element.lastElementChild;
    const before = word?.lastElementChild?.textContent || "⏎"; // nothing, or the break after a newline
    const length = (word?.textContent ?? "").length + label.length;
    if (!word || isSpaced || breaksBetween(before, label) || length > longest) {
      word = make("span", isSpaced ? "word spaced" : "word");
      element.append(word);
    }
    word.append(chip);
    if (label.endsWith("⏎")) word.append(make("br"));
  }

  /** Take `chip` away, and all that comes after it. @param {HTMLElement} chip */
  cut(chip) {
    const word = chip.parentElement;
    if (!word || word.parentElement !== this.element) return;
    while (word.nextSibling) word.nextSibling.remove();
    while (chip.nextSibling) chip.nextSibling.remove();
    chip.remove();
    if (!word.hasChildNodes()) word.remove();
  }
}
