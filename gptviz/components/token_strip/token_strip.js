// Tokens as chips. Text of a model is only set as textContent.

import { chip as chipOf, tint } from "../kit/chips.js";
import { bringIntoView, closest, focusedBeside, make, TabStop } from "../kit/elements.js";
import { Flow } from "../kit/flow.js";
import { ACROSS, along, DOWN, inNextLine, onKeys } from "../kit/keys.js";
import { USUAL } from "../kit/size.js";
import { percent, spoken } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { Card } from "./card.js";
import { inCommon, parsed } from "./tokens.js";

/** @typedef {import("./tokens.js").Token} Token @typedef {import("./tokens.js").Payload} Payload */

// Pixels from the end of the strip within which it counts as read to its end.
const NEAR_END = 24;

class Strip extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {Payload | null} */
    this.data = null;
    /** @type {HTMLElement[]} */
    this.chips = [];
    this.stop = new TabStop();
    this.isFollowing = true; // the strip stays at its end while it grows
    this.text = make("div", "strip", undefined, { role: "group" });
    this.flow = new Flow(this.text);
    this.meaning = make("span");
    const scale = [make("span", "", "0 %"), make("span", "scale tints"), make("span", "", "100 %")];
    this.legend = make("div", "faint small legend", [...scale, this.meaning]);
    this.card = new Card();
    this.kinds = make("div", "faint small legend");
    root.replaceChildren(this.text, this.legend, this.kinds, this.card.element);
    this.listen();
  }

  listen() {
    const { text, card } = this;
    text.addEventListener("pointerover", (event) => this.open(event));
    text.addEventListener("pointerleave", () => card.closeSoon());
    text.addEventListener("focusin", (event) => {
      if (this.index(event) === null) return;
      this.stop.reach(this.chips[/** @type {number} */ (this.index(event))]);
      this.open(event);
    });
    text.addEventListener("focusout", () => card.closeSoon());
    text.addEventListener("click", (event) => {
      const at = this.index(event);
      if (at !== null && this.data?.picks) this.send("pick", { at, generation: this.data.generation });
    });
    onKeys(text, (event) => this.key(event));
    text.addEventListener("scroll", () => {
      card.close();
      this.isFollowing = text.scrollHeight - text.scrollTop - text.clientHeight < NEAR_END;
    });
  }

  /** Bring the page in line with a payload; chips that did not change are left alone. @param {import("./tokens.js").Packed} packed */
  show(packed) {
    const before = this.data,
      data = parsed(packed);
    const { text, chips, stop } = this;
    this.data = data;
    this.setLook(data);
    const focused = chips.indexOf(/** @type {HTMLElement} */ (focusedBeside(text)));
    const kept = this.change(before, data);
    if (focused >= 0 && !focusedBeside(text)) this.focus(focused);
    this.select(data);
    const isNew = data.selected !== before?.selected || data.generation !== before?.generation;
    if (data.selected !== null && isNew) {
      const chip = chips[data.selected];
      stop.reach(chip);
      if (chip) bringIntoView(chip, text, 8); // the strip scrolls, not the page
    } else if (data.selected === null) {
      this.isFollowing ||= before !== null && before.selected !== null;
      // A text opens at its beginning, and so does another one; only what goes on is followed.
      const grew = kept > 0 && kept === before?.tokens.length && kept < data.tokens.length;
      // Not under an open card: who reads it would lose its chip.
      if (grew && this.isFollowing && !this.card.chip) text.scrollTop = text.scrollHeight;
    }
    if (!stop.element?.isConnected) stop.reach(chips[0]);
  }

  /** @param {Payload} data */
  setLook(data) {
    const { root, text, legend } = this;
    root.style.setProperty("--role", data.colour);
    root.classList.toggle("picks", data.picks);
    text.classList.toggle("framed", data.height !== null);
    text.classList.toggle("spaced", data.spaced);
    // Whole lines between its borders.
    text.style.height = data.height === null ? "" : `calc(round(${data.height / USUAL}rem - 0.5rem, 1lh) + 0.5rem)`;
    text.setAttribute("aria-label", data.label);
    legend.hidden = !data.legend || !data.tokens.some((token) => token.probability !== null);
    this.meaning.textContent = data.legend;
    const there = Object.keys(data.kinds).filter((kind) => data.tokens.some((token) => token.kind === kind));
    this.kinds.hidden = !there.length;
    this.kinds.replaceChildren(...there.map((kind) => this.lookOf(make("span", "chip", kind), kind)));
  }

  /** Give a chip the look of its kind. @param {HTMLElement} chip @param {string} kind */
  lookOf(chip, kind) {
    const [colour, line] = this.data?.kinds[kind] ?? ["", ""];
    chip.classList.toggle("of-kind", Boolean(colour));
    chip.style.setProperty("--kind", colour);
    chip.style.setProperty("--line", line);
    return chip;
  }

  /** Keep the chips up to the first that differs, make the rest again; gives how many were kept.
      @param {Payload | null} before @param {Payload} data */
  change(before, data) {
    const isSameKind = before !== null && before.spaced === data.spaced;
    const kept = isSameKind ? inCommon(before.tokens, data.tokens) : 0;
    this.flow.isSpaced = data.spaced;
    const gone = this.chips.splice(kept);
    if (this.card.chip && gone.includes(this.card.chip)) this.card.close();
    if (!kept) this.text.replaceChildren();
    else if (gone.length) this.flow.cut(gone[0]);
    for (const token of data.tokens.slice(kept)) {
      const chip = this.chipOf(token);
      this.flow.add(chip, token.label);
      this.chips.push(chip);
    }
    return kept;
  }

  /** @param {Token} token */
  chipOf({ label, probability, note, isMarked, isFaint, kind, below }) {
    const chip = chipOf(label, "button");
    chip.tabIndex = -1;
    chip.dataset.index = String(this.chips.length);
    chip.classList.toggle("mark", isMarked);
    chip.classList.toggle("out", isFaint);
    if (probability !== null) tint(chip, probability);
    if (kind) this.lookOf(chip, kind);
    if (below) chip.dataset.below = below;
    const said = [spoken(label), ...(probability === null ? [] : [percent(probability)]), ...(note ? [note] : [])];
    chip.setAttribute("aria-label", said.join(", "));
    return chip;
  }

  /** @param {Payload} data */
  select({ selected, picks }) {
    this.chips.forEach((chip, i) => {
      chip.classList.toggle("selected", i === selected);
      chip.ariaPressed = picks ? String(i === selected) : null;
    });
  }

  /** Move the focus to chip `i`, or the nearest there is. @param {number} i */
  focus(i) {
    const chip = this.chips[Math.max(0, Math.min(i, this.chips.length - 1))];
    this.stop.focus(chip, this.text);
  }

  /** The index of the chip that an event is about, null if none. @param {Event} event */
  index(event) {
    const chip = closest(event, ".chip");
    return chip && Number(chip.dataset.index);
  }

  /** Open the card of the chip that an event is about. @param {Event} event */
  open(event) {
    const i = this.index(event);
    if (i === null || !this.data) return this.card.closeSoon();
    this.card.open(this.chips[i], this.data.tokens[i]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const i = this.index(event);
    if (i === null) return false;
    const to = this.walked(event.key, i);
    if (to !== null) this.focus(to);
    else if (event.key === "Escape") this.card.close();
    else return false;
    return true;
  }

  /** The chip that a key leads to from chip `i`; null for a key that does not walk. @param {string} key @param {number} i */
  walked(key, i) {
    const { chips } = this;
    if (key in DOWN) return inNextLine(i, DOWN[key], chips.length, (j) => chips[j].getBoundingClientRect()) ?? i;
    return along(key, i, chips.length, ACROSS);
  }
}

export default view(Strip);
