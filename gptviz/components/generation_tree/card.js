// The card next to the tree: the tokens that one was chosen from, and those that its step attended to.
import { chip, fillLine } from "../kit/chips.js";
import { closest, make } from "../kit/elements.js";
import { count, percent, spoken } from "../kit/text.js";
import { Buttons } from "./buttons.js";
import { nextTokens } from "./next.js";
import { NEXT, START } from "./nodes.js";

/** @typedef {import("./nodes.js").Nodes} Nodes @typedef {import("./nodes.js").Place} Place @typedef {import("./nodes.js").TreeNode} TreeNode */

const LONGEST = 9; // characters of a token
const KEYS = 9; // number keys

/** The card. Its lines are one stop of the Tab key, and so is what was attended to. */
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
    this.head = make("div", "cardhead");
    this.how = make("div", "note how");
    this.list = make("div", "candidates", undefined, { role: "group", "aria-label": "The likeliest tokens in this place" });
    const parts = [this.head, this.how, this.list, attention.line, attention.list];
    this.element = make("div", "card", parts, { role: "region", "aria-label": "What a token was chosen from" });
    this.list.addEventListener("click", (event) => {
      const line = closest(event, "button");
      if (line) take(this.at, Number(line.dataset.token));
    });
    this.lines = new Buttons(this.list, leave);
    this.element.addEventListener("keydown", (event) => event.stopPropagation()); // the page's own keys must not see them
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
    this.lines.fill([]);
    this.attention.line.hidden = true;
  }

  /** @param {Place} at @param {Nodes} nodes @param {any} payload */
  show(at, nodes, payload) {
    this.at = at;
    this.element.dataset.node = String(at);
    this.attention.line.hidden = at === START || !this.attention.layers;
    if (at === NEXT) {
      this.head.replaceChildren(make("span", "name", "The next token"));
      this.how.textContent = "Drawn by Step and Play; or click one to continue with it.";
      this.lines.fill(
        nextTokens(payload).map(({ token, label, p, cut }, i) => lineOf(token, label, p, { isCut: Boolean(cut), i })),
      );
    } else if (at === START) {
      this.head.replaceChildren(make("span", "name", "The prompt"));
      this.how.textContent = "What follows it is written by the model.";
      this.lines.fill([]);
    } else {
      const node = nodes.node(at);
      const name = chip(nodes.label(at));
      name.classList.add("big");
      const nth = make("span", "faint nth", `token ${count(nodes.lengthAt(at))}`);
      this.head.replaceChildren(name, make("span", "number p", percent(Math.exp(node.logprob))), nth);
      this.how.textContent = chosen(node);
      const { candidates, token, draw } = node;
      const all = candidates.map(([other, p, drawn]) => ({ other, p, isCut: drawn === 0, isTaken: other === token }));
      if (!all.some(({ isTaken }) => isTaken))
        all.push({ other: token, p: Math.exp(node.logprob), isCut: draw === -Infinity, isTaken: true });
      this.lines.fill(all.map(({ other, p, isCut, isTaken }, i) => lineOf(other, nodes.labels[other], p, { isCut, i, isTaken })));
    }
  }
}

/** How a node was chosen, in a line. @param {TreeNode} node */
function chosen({ how, byHand, draw }) {
  const drawn = draw === -Infinity ? "the settings had cut it" : `${percent(Math.exp(draw))} in the draw`;
  if (!how) return drawn; // it came while the tree was growing
  return byHand ? `${how}; ${drawn}` : `drawn with ${percent(Math.exp(draw))} (${how}) from:`;
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
  const line = make("button", "bare candidate line", undefined, { tabindex: "-1" });
  line.dataset.token = String(token);
  line.dataset.p = String(p);
  line.classList.toggle("taken", isTaken);
  line.classList.toggle("cut", isCut);
  const hasKey = i < KEYS && !isTaken;
  if (hasKey) line.setAttribute("aria-keyshortcuts", String(i + 1));
  line.title = isTaken ? "The token that was chosen" : `Continue with this one instead${hasKey ? ` (key ${i + 1})` : ""}`;
  const said = `${spoken(label)}, ${percent(p)}${isCut ? ", cut" : ""}`;
  line.setAttribute("aria-label", said + (isTaken ? ", chosen" : ": take it instead"));
  return fillLine(line, label, p, LONGEST);
}
