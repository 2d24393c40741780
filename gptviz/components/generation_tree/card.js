// The card beside the tree: what a token was chosen from, and what its step attended to.
import { make, TabStop } from "../kit/elements.js";
import { chip, count, nameBarNumber, percent, shortened, spoken, tinted } from "../kit/text.js";
import { nextTokens } from "./next.js";
import { NEXT, START } from "./nodes.js";
import { chosen } from "./words.js";

/** @typedef {import("./nodes.js").Nodes} Nodes @typedef {import("./nodes.js").Place} Place @typedef {import("./nodes.js").TreeNode} TreeNode */

const LONGEST = 9; // characters of a token
const KEYS = 9; // number keys

/** The card. Its lines are one stop of the Tab key; the arrow keys walk them. */
export class Card {
  /**
   * @param {import("./attention.js").Attention} attention
   * @param {(at: Place, token: number) => void} take another token was chosen in place of `at`
   * @param {() => void} leave Escape was pressed on a line
   */
  constructor(attention, take, leave) {
    this.attention = attention;
    /** @type {Place} */
    this.at = START; // what is shown
    this.stop = new TabStop();
    this.head = make("div", "cardhead");
    this.how = make("div", "note how");
    this.list = make("div", "candidates", undefined, { role: "group", "aria-label": "The likeliest tokens in this place" });
    this.element = make("div", "card", undefined, { role: "region", "aria-label": "What a token was chosen from" });
    this.element.append(this.head, this.how, this.list, attention.line, attention.list);
    this.list.addEventListener("click", (event) => {
      const line = /** @type {HTMLElement} */ (event.target).closest("button");
      if (line) take(this.at, Number(line.dataset.token));
    });
    this.element.addEventListener("keydown", (event) => {
      event.stopPropagation(); // the page's own keys must not see them
      if (!this.list.contains(/** @type {Node} */ (event.target))) return;
      if (event.key === "Escape") leave();
      else if (!this.walk(event.key)) return;
      event.preventDefault();
    });
  }

  /** @returns {HTMLElement[]} */
  get lines() {
    return [...this.list.querySelectorAll("button")];
  }

  /** The token of the line with this number, from 1; null where there is none. @param {number} number */
  tokenOf(number) {
    const line = /** @type {HTMLElement | undefined} */ (this.list.children[number - 1]);
    return line?.dataset.token ? Number(line.dataset.token) : null;
  }

  /** Shows that the text is growing: nobody has time to read now. */
  wait() {
    this.at = START;
    this.element.dataset.node = "";
    this.head.replaceChildren(make("span", "name", "The text grows"));
    this.how.textContent = "Pause, or click a token, to see from which tokens it was chosen.";
    this.fill([]);
    this.attention.line.hidden = true;
  }

  /** @param {Place} at @param {Nodes} nodes @param {any} payload */
  show(at, nodes, payload) {
    this.at = at;
    this.element.dataset.node = String(at);
    this.attention.line.hidden = at === START;
    if (at === NEXT) {
      this.head.replaceChildren(make("span", "name", "The next token"));
      this.how.textContent = "Drawn by Step and Play; or click one to continue with it.";
      this.fill(nextTokens(payload).map(({ token, label, p, cut }, i) => lineOf(token, label, p, { isCut: Boolean(cut), i })));
    } else if (at === START) {
      this.head.replaceChildren(make("span", "name", "The prompt"));
      this.how.textContent = "What follows was written by the model.";
      this.fill([]);
    } else {
      this.showNode(nodes.node(at), nodes);
    }
  }

  /** @param {TreeNode} node @param {Nodes} nodes */
  showNode(node, nodes) {
    const name = chip(nodes.label(node.id));
    name.classList.add("big");
    const nth = make("span", "nth", `token ${count(nodes.lengthAt(node.id))}`);
    this.head.replaceChildren(name, make("span", "number p", percent(Math.exp(node.logprob))), nth);
    this.how.textContent = chosen(node);
    this.fill(candidateLines(node, nodes.labels));
  }

  /** The line that has the focus, −1 if none. */
  get focused() {
    const { activeElement } = /** @type {ShadowRoot} */ (this.element.getRootNode());
    return this.lines.indexOf(/** @type {HTMLElement} */ (activeElement));
  }

  get hasFocus() {
    return this.focused >= 0;
  }

  /** @param {HTMLElement[]} lines */
  fill(lines) {
    const { focused } = this;
    this.list.replaceChildren(...lines);
    const stop = this.lines[Math.max(0, focused)] ?? this.lines[0];
    if (focused >= 0) this.stop.focus(stop);
    else this.stop.reach(stop);
  }

  /** @param {string} key */
  walk(key) {
    const { lines } = this;
    const at = lines.indexOf(/** @type {HTMLElement} */ (this.stop.element));
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: lines.length - 1 }[key];
    const line = to === undefined ? undefined : lines[Math.max(0, Math.min(lines.length - 1, to))];
    if (!line) return false;
    this.stop.focus(line, this.element);
    return true;
  }
}

/** @param {TreeNode} node @param {Record<number, string>} labels */
function candidateLines(node, labels) {
  if (!node.candidates) return [make("div", "note", "Pause to see what else was likely.")];
  /** @param {number} token @param {number} p @param {boolean} isCut @param {number} i */
  const line = (token, p, isCut, i) => lineOf(token, labels[token], p, { isCut, i, isTaken: token === node.token });
  const lines = node.candidates.map(([token, p, drawn], i) => line(token, p, drawn === 0, i));
  if (node.candidates.some(([token]) => token === node.token)) return lines;
  return [...lines, line(node.token, Math.exp(node.logprob), node.draw === -Infinity, lines.length)];
}

/**
 * A token with its probability as a bar and a number.
 *
 * @param {number} token
 * @param {string} label
 * @param {number} p
 * @param {{ isCut: boolean, i: number, isTaken?: boolean }} look `i`: its place in the list
 */
function lineOf(token, label, p, { isCut, i, isTaken = false }) {
  const line = make("button", "line", undefined, { tabindex: "-1" });
  line.dataset.token = String(token);
  line.dataset.p = String(p);
  line.classList.toggle("taken", isTaken);
  line.classList.toggle("cut", isCut);
  const hasKey = i < KEYS && !isTaken;
  if (hasKey) line.setAttribute("aria-keyshortcuts", String(i + 1));
  line.title = isTaken ? "The token that was chosen" : `Continue with this one instead${hasKey ? ` (key ${i + 1})` : ""}`;
  const said = `${spoken(label)}, ${percent(p)}${isCut ? ", cut" : ""}`;
  line.setAttribute("aria-label", said + (isTaken ? ", chosen" : ": take it instead"));
  const name = chip(shortened(label, LONGEST));
  name.classList.add("name");
  name.style.setProperty("--p", tinted(p));
  line.append(...nameBarNumber(name, p));
  return line;
}
