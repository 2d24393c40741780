// The stage: the branches of the tree as boxes of text with lines between them, and what may come next.
import { chip, tint } from "../kit/chips.js";
import { bringIntoView, closest, focusedBeside, make, setAttributes, shape, TabStop } from "../kit/elements.js";
import { rem } from "../kit/size.js";
import { brief, count, percent, spoken } from "../kit/text.js";
import { BETWEEN, EDGE, branchesOf, curve, placed, shareOf } from "./layout.js";
import { Next } from "./next.js";
import { NEXT, START, nats } from "./nodes.js";
import { Run } from "./run.js";

/** @typedef {import("./nodes.js").Nodes} Nodes @typedef {import("./nodes.js").Place} Place */

// In rem: the narrowest and the widest box on the path, the widest that grows, other boxes, and how wide a stage must
// be that leaves room for other boxes below what may come next.
const NARROWEST = 11.5,
  WIDEST = 35,
  GROWN = 90,
  ASIDE = 12,
  WIDE = 45;
// A box that grows stays low until its last line begins lower than this.
const SHORT = 2;

/** The stage and all that stands on it. */
export class Boxes {
  constructor() {
    this.links = shape("svg", { class: "overlay links", "aria-hidden": "true" });
    this.next = new Next();
    this.canvas = make("div", "canvas", [this.links, this.next.element], { role: "none" });
    const look = { role: "tree", "aria-label": "What was generated, as a tree of tokens" };
    this.stage = make("div", "stage", [this.canvas], look);
    /** @type {Map<number, Run>} */
    this.runs = new Map(); // by the id of the first node
    /** @type {Map<number, HTMLElement>} */
    this.chips = new Map(); // by node
    /** @type {HTMLElement[]} */
    this.prompt = []; // the chips of the prompt
    /** @type {HTMLElement[]} */
    this.pale = []; // chips that a replay has not reached
    this.stop = new TabStop();
    /** @type {HTMLElement | null} */
    this.marked = null; // the chip that is looked at
    /** @type {any} */
    this.outline = null; // the branches, each with its box and its place
    this.width = 0; // of the stage, when the boxes were placed
    this.room = ""; // its width and height then: boxes are as high as the stage allows
    this.unit = 16; // pixels of a rem, which grows with the window
    this.column = 0; // where what may come next stands, from the left edge of the stage
    /** @type {Nodes} */
    this.nodes = /** @type {any} */ (null); // until the first draw
  }

  /** The element that has the focus, null if it is not on the stage. */
  get focused() {
    const focused = focusedBeside(this.stage);
    return this.stage.contains(focused) ? focused : null;
  }

  // Drawing

  /**
   * Draw a tree. Boxes and chips that stand there already are left alone.
   *
   * @param {Nodes} nodes
   * @param {any} payload
   * @param {{ isMoved: boolean, looked: Place | null }} look `isMoved`: the current place has changed
   */
  draw(nodes, payload, { isMoved, looked }) {
    this.nodes = nodes;
    const before = this.focused;
    this.outline = nodes.outline();
    const stale = new Map(this.runs);
    for (const branch of branchesOf(this.outline)) {
      stale.delete(branch.start);
      const run = this.runs.get(branch.start) ?? new Run();
      this.runs.set(branch.start, run);
      branch.run = run;
      // A chip shows what it is of; another tree has other tokens under the same ids.
      if (run.number !== nodes.number) run.cutAt(0);
      run.number = nodes.number;
      branch.changed = run.hold(branch.nodes, (id) => this.pieces(id), payload.spaced);
      run.setLevel(branch.level);
    }
    for (const [start, run] of stale) {
      run.element.remove();
      this.runs.delete(start);
    }
    for (const id of this.chips.keys()) if (!nodes.has(id)) this.chips.delete(id);
    const end = [...branchesOf(this.outline)].find((branch) => branch.current);
    this.next.fill(nodes, payload, end.level + 1);
    this.arrange(isMoved, looked);
    if (before && !before.isConnected) this.chips.get(nodes.current)?.focus({ preventScroll: true });
    this.stop.reach(this.chips.get(/** @type {number} */ (looked)) ?? this.chips.get(nodes.current));
  }

  /** The chips of a node with their labels: its button; of the prompt all its tokens, the last of which is the button. @param {number} id @returns {[HTMLElement, string][]} */
  pieces(id) {
    if (id !== START) return [[this.chip(id), this.nodes.label(id)]];
    const labels = this.nodes.prompt;
    this.prompt = labels.map((/** @type {string} */ label, /** @type {number} */ i) => {
      const isLast = i === labels.length - 1;
      const one = isLast ? this.chip(START) : chip(label);
      if (!isLast) one.setAttribute("aria-hidden", "true"); // the last one says "the prompt", and is an item of the tree
      one.classList.add("prompt");
      one.dataset.node = String(START);
      return one;
    });
    return this.prompt.map((one, i) => [one, labels[i]]);
  }

  /** @param {number} id */
  chip(id) {
    const label = this.nodes.label(id),
      p = Math.exp(this.nodes.node(id).logprob);
    const button = chip(label, "button");
    button.role = "treeitem";
    button.tabIndex = -1;
    button.dataset.node = String(id);
    button.ariaLabel = id === START ? "the prompt" : `${spoken(label)}, ${percent(p)}`;
    if (id !== START) tint(button, p);
    this.chips.set(id, button);
    return button;
  }

  /** Give every box its size and place. @param {boolean} isMoved @param {Place | null} looked */
  arrange(isMoved, looked) {
    this.width = this.stage.clientWidth;
    this.room = `${this.width} ${this.stage.clientHeight}`;
    this.unit = rem();
    this.fillBoxes();
    this.giveWidths();
    const { next } = this;
    const { offsetWidth: width, offsetHeight: height } = next.element;
    const { right, bottom, fan, links } = placed(this.outline, next.element.hidden ? null : { width, height });
    for (const { run, x, y } of branchesOf(this.outline)) run.element.style.transform = `translate(${x}px, ${y}px)`;
    if (fan) next.element.style.transform = `translate(${fan.x}px, ${fan.y}px)`;
    for (const line of fan ? next.lines : []) {
      const look = line.classList.contains("cut") ? "link next cut" : "link next";
      links.push([fan.from, fan.x, fan.y + line.offsetTop + line.offsetHeight / 2, look]);
    }
    const lines = links.map(([from, x, y, look]) => [curve(from.x + from.w, from.y + from.h / 2, x, y), look]);
    Object.assign(this.canvas.style, { width: `${right}px`, height: `${bottom}px` });
    setAttributes(this.links, { width: right, height: bottom });
    this.links.replaceChildren(...lines.map(([d, look]) => shape("path", { d, class: look })));
    for (const [id, one] of this.chips) {
      one.classList.toggle("current", id === this.nodes.current);
      one.ariaCurrent = id === this.nodes.current ? "true" : null;
    }
    this.scroll(isMoved, looked);
  }

  fillBoxes() {
    for (const branch of branchesOf(this.outline)) {
      const { element, foot } = branch.run;
      branch.grows = branch.current;
      element.classList.toggle("strong", branch.strong);
      element.classList.toggle("grows", branch.grows);
      element.classList.toggle("only", branch.grows && branch === this.outline);
      const { total } = this.nodes.node(branch.end),
        length = this.nodes.lengthAt(branch.end);
      foot.hidden = !((branch.current || !branch.children.length) && branch.end !== START);
      foot.replaceChildren(make("span", "sum", `Σ ${nats(total)}`), make("span", "mean", `${brief(total / length)} per token`));
      foot.title = `Sum of the log-probabilities of this branch’s ${count(length)} tokens after the prompt, and their mean`;
      foot.dataset.total = String(total);
      if (!element.isConnected) this.canvas.append(element);
    }
  }

  /** The boxes of the current path share the stage; the one that grows takes all that the others leave. */
  giveWidths() {
    const { unit } = this;
    const aside = Math.max(this.next.element.offsetWidth, this.width < WIDE * unit ? 0 : ASIDE * unit);
    this.column = Math.floor(Math.min(this.width - EDGE - aside, EDGE + GROWN * unit + BETWEEN));
    const all = [...branchesOf(this.outline)],
      path = all.filter((branch) => branch.strong);
    // Only once for each text: measuring lays it out again, which scrolls it.
    const fresh = path.filter((branch) => !branch.grows && branch.run.wanted === null);
    for (const { run } of fresh) Object.assign(run.element.style, { width: "", maxWidth: `${WIDEST * unit}px` });
    for (const { run } of fresh) run.wanted = run.element.offsetWidth;
    const room = this.column - EDGE - BETWEEN * path.length;
    const wanted = path.map(({ run, grows }) => (grows ? GROWN * unit : run.wanted));
    // Whole pixels, as boxes are measured: the place of what may come next depends on their sum.
    const narrowest = Math.floor(Math.min(NARROWEST * unit, Math.max(room, 0.7 * NARROWEST * unit)));
    const widest = Math.floor(Math.max(narrowest, Math.min(shareOf(wanted, room), GROWN * unit)));
    for (const { run, strong } of all) {
      run.element.style.maxWidth = `${Math.min(widest, Math.floor((strong ? WIDEST : ASIDE) * unit))}px`;
    }
    // Below what may come next there may be little room.
    for (const { run } of path.at(-1).children) run.element.style.maxWidth = `${Math.min(widest, aside)}px`;
    const others = path.slice(0, -1).reduce((sum, { run }) => sum + Math.min(run.wanted, widest, Math.floor(WIDEST * unit)), 0);
    const { element } = path.at(-1).run;
    element.style.width = element.style.maxWidth = `${Math.max(narrowest, room - others)}px`;
    for (const { run, grows } of all) {
      if (!grows) run.element.style.width = "";
      run.element.classList.toggle("short", grows && run.text.lastElementChild.offsetTop < SHORT * unit);
    }
  }

  /**
   * Bring the current place into view: the end of its box, and what may come next, always in the same place of the stage. Other
   * boxes show the beginning of their texts.
   *
   * @param {boolean} isMoved
   * @param {Place | null} looked
   */
  scroll(isMoved, looked) {
    const at = [...branchesOf(this.outline)].find((branch) => branch.current);
    if (isMoved || (looked === null && at.changed)) at.run.text.scrollTop = at.run.text.scrollHeight;
    if (!isMoved) return;
    this.stage.scrollLeft = Math.max(0, at.x + at.w + BETWEEN - this.column);
    this.stage.scrollTop = 0;
  }

  /**
   * Let every box grow until it shows all of its text, as long as `act` takes.
   *
   * @template Result
   * @param {() => Result} act
   * @returns {Result}
   */
  unfolded(act) {
    const boxes = [this.stage, ...[...this.runs.values()].map((run) => run.text)];
    const places = boxes.map((box) => [box.scrollLeft, box.scrollTop]);
    this.stage.classList.add("unfolded");
    this.arrange(false, null);
    const result = act();
    this.stage.classList.remove("unfolded");
    this.arrange(false, null);
    for (const [i, box] of boxes.entries()) [box.scrollLeft, box.scrollTop] = places[i];
    return result;
  }

  // Looking

  /** The place that an event is about: a node or NEXT, null if none. @param {Event} event @returns {Place | null} */
  at(event) {
    const found = this.elementOf(event);
    if (!found) return null;
    return found.classList.contains("ghost") ? NEXT : Number(found.dataset.node);
  }

  /** The chip or line that an event is about. @param {Event} event @returns {HTMLElement | null} */
  elementOf(event) {
    return closest(event, "[data-node], .ghost");
  }

  /** The chips of the text that ends before `at`, by their places. @param {Place} at @returns {import("./attention.js").ChipAt} */
  chipAt(at) {
    const { nodes, prompt, chips } = this;
    const path = nodes.pathTo(nodes.before(at) ?? START),
      length = nodes.promptLength;
    return (place) => (place < length ? prompt[place - length + prompt.length] : chips.get(path[place - length]));
  }

  /** Mark the chip that is looked at. @param {Place | null} looked */
  mark(looked) {
    this.marked?.classList.remove("focus");
    this.marked = this.chips.get(/** @type {number} */ (looked)) ?? null;
    this.marked?.classList.add("focus");
  }

  /** Show these nodes pale: a replay has not reached them. @param {number[]} later */
  fade(later) {
    for (const one of this.pale) one.classList.remove("later");
    this.pale = later.flatMap((id) => this.chips.get(id) ?? []);
    for (const one of this.pale) one.classList.add("later");
  }

  /** Scroll a box and the stage, but not the page, until an element is seen. @param {Element | null | undefined} element */
  reveal(element) {
    if (!element) return;
    for (const box of [element.closest(".text"), this.stage]) if (box) bringIntoView(element, box);
  }
}
