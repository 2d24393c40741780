// The box that is open: what it does, its tensors, its numbers, its lines of source.

import { make } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { plural } from "../kit/text.js";
import { sizes, titleOf } from "./boxes.js";
import { coloured } from "./equation.js";
import { tensorOf } from "./tensor.js";

/** @typedef {import("./boxes.js").Box} Box */

/** @type {Record<string, string>} */
const KINDS = { activation: "computed", weight: "W learned", fixed: "fixed" };
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

  hide() {
    this.element.hidden = true;
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
    const about = make("div", "about");
    about.append(make("p", "", box.about), coloured(box.equation), this.pieces(box));
    const columns = make("div", "columns");
    columns.append(about, tensorOf(map));
    this.element.replaceChildren(headOf(box), columns, sourceOf(box));
    if (focused) /** @type {HTMLElement | null} */ (this.element.querySelector(focused))?.focus({ preventScroll: true });
    const lines = /** @type {HTMLElement} */ (this.element.querySelector(".lines"));
    const marked = /** @type {HTMLElement | null} */ (lines.querySelector(".marked"));
    if (this.path === box.path) lines.scrollTop = scrolled ?? 0;
    else lines.scrollTop = marked ? marked.offsetTop - lines.offsetTop - 40 : 0;
    this.path = box.path;
  }

  /** A selector of what has the focus in the panel, null if nothing. */
  focused() {
    const element = /** @type {ShadowRoot} */ (this.element.getRootNode()).activeElement;
    if (!element || !this.element.contains(element)) return null;
    const name = OWN_NAMES.find((one) => element.hasAttribute(one));
    return name ? `[${name}="${CSS.escape(/** @type {string} */ (element.getAttribute(name)))}"]` : null;
  }

  /** The tensors of the box, to choose among. @param {Box} box */
  pieces(box) {
    const { opened } = this.map;
    const list = make("div", "pieces", undefined, { role: "group", "aria-label": "Tensors of this box" });
    box.pieces.forEach((piece, i) => {
      const button = make("button", `bare piece ${piece.kind}`, undefined, {
        "data-piece": i,
        "aria-pressed": i === opened.piece,
      });
      const about = [KINDS[piece.kind], moreOf(piece)].filter(Boolean).join(", ");
      button.append(make("strong", "", piece.symbol), make("span", "number", sizes(piece.shape)), make("small", "", about));
      button.title = piece.rows ? `${piece.name}, rows ${piece.rows[0]} to ${piece.rows[1] - 1}` : piece.name;
      list.append(button);
    });
    return list;
  }
}

/** What the box is called, and the way to close it. @param {Box} box */
function headOf(box) {
  const title = make("h2", "", titleOf(box));
  title.append(make("code", "path", box.path));
  const row = make("div", "row");
  row.append(title, make("button", "tool", "Close", { "data-close": "", title: "Close (Escape)" }));
  return row;
}

/** @param {Box} box */
function sourceOf(box) {
  const { file, first, last, text, marked } = box.lines;
  const list = make("div", "lines code", undefined, { tabindex: "0", role: "region", "aria-label": "Source" });
  text.split("\n").forEach((line, i) => {
    const row = make("div", marked.includes(first + i) ? "line marked" : "line");
    row.append(make("span", "at", String(first + i)), make("span", "", line));
    list.append(row);
  });
  const place = make("div", "source");
  place.append(make("div", "note", `${file}, lines ${first} to ${last}`), list);
  return place;
}

/** How many numbers of a tensor are learned, and whether elsewhere. @param {import("./boxes.js").Piece} piece */
function moreOf({ kind, parameters }) {
  if (kind === "fixed") return "by a formula";
  if (kind !== "weight") return "";
  return parameters ? plural(parameters, "parameter") : "counted elsewhere: shared";
}
