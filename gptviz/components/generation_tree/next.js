// The tokens that may come next: the likeliest, a button each, next to the end of the current branch.
import { chip, tint } from "../kit/chips.js";
import { make } from "../kit/elements.js";
import { percent, shortened, spoken } from "../kit/text.js";

/** @typedef {import("./nodes.js").Nodes} Nodes */

const LONGEST = 7; // characters of a token

/** The buttons of what may come next. */
export class Next {
  constructor() {
    this.element = make("div", "ghosts", undefined, { role: "group", "aria-label": "What may come next" });
    /** @type {HTMLElement[]} */
    this.lines = [];
  }

  /** @param {Nodes} nodes @param {any} payload @param {number} level of the branch that each would begin */
  fill(nodes, payload, level) {
    const taken = nodes.node(nodes.current).children.map((id) => nodes.node(id).token);
    const isClosed = payload.playing || payload.full;
    this.lines = nextTokens(payload).map((one) => button(one, taken.includes(one.token), isClosed, level));
    this.element.replaceChildren(make("div", "note", "may come next"), ...this.lines);
    this.element.hidden = !this.lines.length;
  }
}

/**
 * The part of a payload about the token to come.
 *
 * @param {any} payload
 * @returns {{ token: number, label: string, p: number, drawn: number, cut: string }[]}
 */
export function nextTokens({ arrays, cut, labels }) {
  const { ghost, ghost_p: p } = arrays;
  return Array.from(ghost, (token, i) => ({ token, label: labels[token], p: p[2 * i], drawn: p[2 * i + 1], cut: cut[i] }));
}

/**
 * @param {ReturnType<typeof nextTokens>[number]} one
 * @param {boolean} isTaken a branch goes on with it already
 * @param {boolean} isClosed no token can be taken now
 * @param {number} level
 */
function button({ token, label, p, drawn, cut }, isTaken, isClosed, level) {
  const line = make("button", "bare aligned ghost", undefined, { role: "treeitem", tabindex: "-1", "aria-level": level });
  line.dataset.token = String(token);
  line.classList.toggle("cut", Boolean(cut));
  line.classList.toggle("taken", isTaken);
  line.classList.toggle("closed", isClosed);
  if (isClosed) line.setAttribute("aria-disabled", "true");
  const chance = cut ? `cut by ${cut}: never drawn` : `drawn with ${percent(drawn)}`;
  const act = isTaken ? "; a branch goes on with it: click to go there" : "; click to continue with it";
  line.title = chance + (isClosed ? "" : act);
  line.setAttribute(
    "aria-label",
    `next: ${spoken(label)}, ${percent(p)}, ${chance}${isTaken ? ", a branch goes on with it" : ""}`,
  );
  const name = tint(chip(shortened(label, LONGEST)), p);
  name.classList.add("name");
  line.append(name, make("span", "number", percent(p)));
  return line;
}
