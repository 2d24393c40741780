// The box that is open: what it does, its tensors, its numbers, its lines of source.

import { focusedBeside, make } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { plural } from "../kit/text.js";
import { sizes, titleOf } from "./boxes.js";
import { coloured } from "./equation.js";
import { tensorOf } from "./tensor.js";

/** @typedef {import("./boxes.js").Box} Box */

/** @type {Record<string, string>} */
const KINDS = { activation: "computed", weight: "W learned", fixed: "fixed, by a formula" };
// The attributes by which an element is found after the panel was filled again, so that it keeps the focus.
const OWN_NAMES = ["data-axis", "data-piece", "data-close", "aria-label"];

/** It is handed the map, and tells it what is chosen. */
export class Panel {
  /** @param {import("./model_map.js").ModelMap} map */
  constructor(map) {
    this.map = map;
    this.shown = ""; // what the panel is filled with
    /** @type {string | undefined} */
    this.path = undefined; // of the box in it
    this.element = make("section", "panel");
    this.element.hidden = true;
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener(
      "change",
      ({ target }) => target instanceof HTMLSelectElement && this.move(target.dataset.axis, target.value),
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      map.shut();
    });
  }

  /** @param {MouseEvent} event */
  clicked({ target }) {
    const { map } = this;
    if (!(target instanceof Element)) return;
    if (target.closest("[data-close]")) return map.shut();
    /** @type {HTMLElement | null} */
    const piece = target.closest("[data-piece]");
    /** @type {HTMLElement | null} */
    const step = target.closest("[data-step]");
    if (piece) {
      map.opened.choosePiece(Number(piece.dataset.piece));
      map.changed();
    } else if (step) this.move(step.dataset.of, map.opened.at[Number(step.dataset.of)] + Number(step.dataset.step));
  }

  /** @param {unknown} axis @param {unknown} to */
  move(axis, to) {
    this.map.opened.move(Number(axis), Number(to));
    this.map.changed();
  }

  show() {
    const { map } = this;
    const { opened, data } = map;
    const box = /** @type {Box} */ (opened.box);
    this.element.hidden = false;
    const isHere = Boolean(data.tensor && opened.isOf(data.tensor));
    const shown = JSON.stringify([map.drawing, box.path, opened.piece, opened.at, isHere]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = this.focused();
    const scrolled = this.element.querySelector(".lines")?.scrollTop;
    this.element.style.setProperty("--own", ROLES[box.role]);
    this.element.setAttribute("aria-label", titleOf(box));
    const about = make("div", "about", [make("p", "", box.about), coloured(box.equation), this.pieces(box)]);
    const title = make("h2", "", [titleOf(box), make("code", "path", box.path)]);
    const close = make("button", "tool", "Close", { "data-close": "", title: "Close (Escape)" });
    const head = make("div", "row", [title, close]);
    this.element.replaceChildren(head, make("div", "columns", [about, tensorOf(map)]), sourceOf(box));
    if (focused) /** @type {HTMLElement | null} */ (this.element.querySelector(focused))?.focus({ preventScroll: true });
    const lines = /** @type {HTMLElement} */ (this.element.querySelector(".lines"));
    const marked = /** @type {HTMLElement | null} */ (lines.querySelector(".marked"));
    if (this.path === box.path) lines.scrollTop = scrolled ?? 0;
    else lines.scrollTop = marked ? marked.offsetTop - lines.offsetTop - 40 : 0;
    this.path = box.path;
  }

  /** A selector of what has the focus in the panel, null if nothing. */
  focused() {
    const element = focusedBeside(this.element);
    if (!element || !this.element.contains(element)) return null;
    const name = OWN_NAMES.find((one) => element.hasAttribute(one));
    return name ? `[${name}="${CSS.escape(/** @type {string} */ (element.getAttribute(name)))}"]` : null;
  }

  /** The tensors of the box, to choose among. @param {Box} box */
  pieces(box) {
    const { opened } = this.map;
    const buttons = box.pieces.map((piece, i) => {
      const { kind, name, rows, shape, symbol } = piece;
      const learned = piece.parameters ? plural(piece.parameters, "parameter") : "counted elsewhere: shared";
      const about = KINDS[kind] + (kind === "weight" ? `, ${learned}` : "");
      const words = [make("strong", "", symbol), make("span", "number", sizes(shape)), make("small", "faint tiny", about)];
      const title = rows ? `${name}, rows ${rows[0]} to ${rows[1] - 1}` : name;
      return make("button", `bare piece ${kind}`, words, { "data-piece": i, "aria-pressed": i === opened.piece, title });
    });
    return make("div", "wrapped pieces", buttons, { role: "group", "aria-label": "Tensors of this box" });
  }
}

/** @param {Box} box */
function sourceOf(box) {
  const { file, first, last, text, marked } = box.lines;
  const lines = text.split("\n").map((line, i) => {
    const words = [make("span", "faint at", String(first + i)), make("span", "", line)];
    return make("div", marked.includes(first + i) ? "line marked" : "line", words);
  });
  const list = make("div", "lines code", lines, { tabindex: "0", role: "region", "aria-label": "Source" });
  return make("div", "source", [make("div", "note", `${file}, lines ${first} to ${last}`), list]);
}
