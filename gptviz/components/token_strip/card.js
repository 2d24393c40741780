// The card of a token: what else was likely in its place.

import { chip as chipOf, fillLine } from "../kit/chips.js";
import { make } from "../kit/elements.js";
import { Floating, under } from "../kit/floating.js";
import { percent } from "../kit/text.js";

/** @typedef {import("./tokens.js").Token} Token */

// Milliseconds that the pointer has to reach the card.
const HIDE_AFTER = 150;

/** The card that is open next to a chip, at most one. */
export class Card {
  constructor() {
    this.floating = new Floating();
    this.element = this.floating.element;
    this.element.id = "card";
    /** @type {HTMLElement | null} */
    this.chip = null; // the one it is open for
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.closing = undefined;
    this.element.addEventListener("pointerenter", () => clearTimeout(this.closing));
    this.element.addEventListener("pointerleave", () => this.closeSoon());
  }

  /** @param {HTMLElement} chip @param {Token} token */
  open(chip, token) {
    clearTimeout(this.closing);
    if (chip === this.chip) return;
    this.close();
    const { label, probability, alternatives, note } = token;
    if (probability === null && !note && !alternatives.length) return;
    const number = probability === null ? [] : [make("span", "number", percent(probability))];
    const lines = alternatives.map(([other, likely]) =>
      fillLine(make("div", other === label ? "candidate taken" : "candidate"), other, likely),
    );
    this.element.replaceChildren(
      make("div", "head", [chipOf(label), ...number]),
      ...(note ? [make("div", "note", note)] : []),
      ...(lines.length ? [make("div", "alternatives", lines)] : []),
    );
    this.chip = chip;
    chip.classList.add("open");
    chip.setAttribute("aria-describedby", "card");
    this.floating.open(chip, under);
  }

  closeSoon() {
    clearTimeout(this.closing);
    this.closing = setTimeout(() => this.close(), HIDE_AFTER);
  }

  close() {
    clearTimeout(this.closing);
    this.chip?.classList.remove("open");
    this.chip?.removeAttribute("aria-describedby");
    this.chip = null;
    this.floating.close();
  }
}
