// The drawing of the map on the page: above, all of the model from tokens to guesses; below, the block that is open.

import { background } from "../kit/colour.js";
import { TabStop, focusedBeside, make, setAttributes, shape } from "../kit/elements.js";
import { ACROSS, along, DOWN, onKeys } from "../kit/keys.js";
import { ROLES } from "../kit/roles.js";
import { USUAL, rem } from "../kit/size.js";
import { Block } from "./block.js";
import { placed } from "./boxes.js";
import { Layout, SMALL } from "./geometry.js";
import { Pen } from "./pen.js";
import { Room, leastRoom } from "./room.js";
import { Whole } from "./whole.js";

/** Draws the map, and says what is clicked or looked at on it. It is handed the map, whose methods it calls. */
export class Stage {
  /** @param {import("./model_map.js").ModelMap} map */
  constructor(map) {
    this.map = map;
    this.element = make("div", "stage");
    this.frame = make("div", "frame", [this.element]);
    // On a narrow page the guesses stand here, above the map, which scrolls.
    this.ahead = make("div", "ahead");
    this.stop = new TabStop();
    /** @type {Layout} */
    this.layout = /** @type {any} */ (undefined); // until the first draw
    /** @type {Pen} */
    this.pen = /** @type {any} */ (undefined);
    /** @type {string[]} */
    this.order = [];
    this.current = ""; // the path that the Tab key reaches
    /** The frame of the block that is drawn below. @type {SVGElement | null} */
    this.blockFrame = null;
    for (const place of [this.element, this.ahead]) {
      place.addEventListener("click", (event) => this.clicked(event));
      onKeys(place, (event) => this.key(event));
      place.addEventListener("pointerover", (event) => this.over(event));
      place.addEventListener("pointerleave", () => this.look(null));
      place.addEventListener("focusin", (event) => this.over(event));
    }
  }

  // Drawing

  draw() {
    const { data, opened, root } = this.map;
    const focused = focusedBeside(root);
    const isHeld = this.element.contains(focused) || this.ahead.contains(focused);
    const heldPath = isHeld ? focused?.dataset.path : undefined;
    const hasBlock = opened.boxes.blocks(opened.stack) > 0;
    const least = leastRoom(opened.boxes);
    this.layout = new Layout({ least, isDouble: data.sizes[0] > 0, hasBlock }, this.map.root.clientWidth);
    this.blockFrame = null;
    this.pen = new Pen({ root, data, boxes: opened.boxes, layout: this.layout, isPlain: !opened.hasSizes });
    const whole = new Whole(this.pen, opened);
    this.layout.stacks.forEach((stack, row) => whole.drawStack(stack, this.layout.topOf(row)));
    if (hasBlock) this.drawBlock(whole.lens);
    this.order = [...new Set(this.pen.order)].filter((path) => this.pen.elements.has(path));
    const { width, height, isNarrow } = this.layout;
    Object.assign(this.element.style, { width: `${width}px`, height: `${height}px`, fontSize: `${SMALL}px` });
    const help = "Arrow keys walk along the stream, Enter opens a box.";
    setAttributes(this.element, { role: "group", "aria-label": `Map of the model ${data.model}: ${data.size}. ${help}` });
    this.ahead.replaceChildren(...(isNarrow ? [whole.guesses] : []));
    const inside = isNarrow ? whole.columns : [...whole.columns, whole.guesses];
    this.element.replaceChildren(this.pen.svg, ...inside, ...this.pen.thumbnails);
    // A decoder goes on from the end of its text.
    if (data.kind === "decoder")
      for (const strip of this.element.querySelectorAll(".strip")) strip.scrollTop = strip.scrollHeight;
    if (!this.pen.elements.has(this.current)) this.current = this.order[0];
    for (const element of this.pen.elements.values()) element.setAttribute("tabindex", "-1");
    this.stop.reach(this.pen.elements.get(this.current));
    this.look(null);
    this.light();
    this.fit();
    if (heldPath) this.pen.elements.get(heldPath)?.focus();
  }

  /** @param {{ x: number, w: number, bottom: number } | null} lens where the block stands among the others */
  drawBlock(lens) {
    const { pen, layout } = this;
    const { stack, block, boxes } = this.map.opened;
    const { width, topOfBlock: top } = layout;
    const faint = pen.mix(ROLES.stream, 0.35);
    if (lens) {
      const d = `M${lens.x} ${lens.bottom}h${lens.w}L${width - 1} ${top}H1z`;
      pen.under.prepend(shape("path", { d, fill: pen.mix(ROLES.stream, 0.1), stroke: faint, "stroke-width": 1 }));
    }
    const frame = { x: 1, y: top, width: width - 2, height: layout.block - 1, rx: 8 };
    // Blocks are counted from 0, as in the names of their tensors.
    const last = boxes.blocks(stack) - 1;
    const title = `${boxes.blockName(stack, block)}${last ? ` (of 0 to ${last})` : ""}`;
    this.blockFrame = shape("rect", { ...frame, fill: pen.colours.ground, stroke: faint, "stroke-width": 1 });
    pen.under.append(this.blockFrame, pen.text(12, top + 19, title, { size: 12.5, weight: 650, anchor: "start" }));
    new Block(pen, new Room(boxes, stack, block), top).draw();
  }

  /** As large as there is room. */
  fit() {
    const room = this.map.root.clientWidth;
    if (!room || !this.layout) return;
    if (this.layout.isNarrow !== this.layout.isNarrowIn(room)) this.draw();
    else this.element.style.zoom = String(this.layout.zoom(room, rem() / USUAL));
  }

  /** The part of the map that stays in sight when a box is opened: the block that the box is in, else the box. @param {string} path */
  kept(path) {
    return (placed(path).block !== null && this.blockFrame) || this.pen.elements.get(path) || this.element;
  }

  /** While a box is open, the rest of the map steps back. */
  light() {
    const { path: open } = this.map.opened;
    this.pen.svg.classList.toggle("open", open !== null);
    for (const [path, element] of this.pen.elements) {
      if (!element.dataset.box) continue;
      element.classList.toggle("open", path === open);
      element.setAttribute("aria-expanded", String(path === open));
    }
    for (const canvas of this.pen.thumbnails)
      canvas.classList.toggle("back", open !== null && Boolean(canvas.dataset.of) && canvas.dataset.of !== open);
  }

  /** The colours of the page, by which it is seen whether the map must be drawn again. */
  get ground() {
    return background(this.map.root);
  }

  // Hovering

  /** @param {Event} event */
  over(event) {
    this.look(held(event, "[data-box],[data-block]")?.dataset.path ?? null);
  }

  /** The arrows of what is under the pointer stand out, and a line tells of it. @param {string | null} path */
  look(path) {
    for (const { start, end, element } of this.pen?.arrows ?? [])
      element.classList.toggle("lit", path !== null && (start === path || end === path));
    this.map.tell(path);
  }

  // Clicks and the keyboard

  /** @param {Event} event */
  clicked(event) {
    const guess = held(event, "[data-guess]");
    if (guess && this.map.data.takes) return this.map.take(Number(guess.dataset.guess));
    const block = held(event, "[data-block]");
    if (block) {
      this.current = block.dataset.path;
      return this.map.openBlock(block.dataset.stack, Number(block.dataset.number));
    }
    const box = held(event, "[data-box]");
    if (!box) return;
    this.current = box.dataset.path;
    const head = held(event, "[data-head]");
    this.map.clickBox(box.dataset.box, head ? Number(head.dataset.head) : null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const place = held(event, "[data-path]");
    if (!place) return false;
    const { path } = place.dataset,
      { order } = this;
    const next = along(event.key, order.indexOf(path), order.length, path.startsWith("guess ") ? { ...ACROSS, ...DOWN } : ACROSS);
    if (next !== null) this.focus(order[next]);
    else if (event.key in DOWN) this.focus(this.map.moveToBlock(DOWN[event.key], path));
    else if ((event.key === "Enter" || event.key === " ") && place.tagName !== "BUTTON") {
      place.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      this.focus(path);
    } else if (event.key === "Escape" && this.map.opened.path !== null) this.map.shut();
    else return false;
    return true;
  }

  /** Give the focus to what has this path, if it is drawn. @param {string | undefined} path */
  focus(path) {
    const element = path === undefined ? undefined : this.pen.elements.get(path);
    if (path === undefined || !element) return;
    this.current = path;
    this.stop.focus(element, this.frame);
  }
}

/**
 * The part of the map that an event is about: the nearest element with a mark. Its marks are set where it is drawn.
 *
 * @param {Event} event
 * @param {string} selector
 * @returns {{ dataset: Record<string, string>, tagName: string, dispatchEvent: (event: Event) => boolean } | null}
 */
function held(event, selector) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return /** @type {ReturnType<typeof held>} */ (/** @type {unknown} */ (found));
}
