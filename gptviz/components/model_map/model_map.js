// The map of a model: the drawing, and under it the box that is open.

import { Choices } from "../kit/choices.js";
import { announce, tools } from "../kit/details.js";
import { button, make } from "../kit/elements.js";
import { plural } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { Boxes, parametersOf, placed, titleOf } from "./boxes.js";
import { coloured, legend } from "./equation.js";
import { pictureOfMap, tableOfBoxes } from "./export.js";
import { drawnBlocks } from "./geometry.js";
import { Opened } from "./opened.js";
import { Panel } from "./panel.js";
import { Questions } from "./questions.js";
import { reveal } from "./scroll.js";
import { Stage } from "./stage.js";

/** Joins the parts: it holds what is open, and tells each part when to draw. */
export class ModelMap extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {import("./boxes.js").Payload} */
    this.data = /** @type {any} */ (undefined); // until the first payload
    this.drawing = ""; // what the drawing is made from
    this.taken = ""; // the last guess that was taken, and the text it is for
    this.opened = new Opened();
    /** @type {Choices<import("./opened.js").Choice>} */
    this.choices = new Choices();
    this.questions = new Questions((question) => this.send("look", question));
    this.stage = new Stage(this);
    this.status = make("div", "cut status note");
    this.foot = make("div", "foot row");
    this.number = make("input", "field number", undefined, { type: "number", min: "0", step: "1" });
    this.goTo = make("label", "aligned note go-to", ["Go to block", this.number]);
    this.number.onchange = () => this.go(this.number.value);
    this.number.onkeydown = (/** @type {KeyboardEvent} */ event) => event.stopPropagation(); // arrows count here
    const switchSizes = () => {
      this.opened.hasSizes = !this.opened.hasSizes;
      this.draw();
      this.write();
      this.sizes.focus();
    };
    this.sizes = button("Sizes", switchSizes, { title: "Shapes, counts and names of tensors on the map" });
    this.panel = new Panel(this);
    root.replaceChildren(this.stage.ahead, this.stage.frame, this.status, this.foot, this.panel.element);
    this.whenResized(() => this.stage.fit(), root);
  }

  /** @param {import("./boxes.js").Payload} data */
  show(data) {
    const isFirst = this.data === undefined;
    const drawing = JSON.stringify([data.text, this.stage.ground, data.guesses.length]);
    this.data = data;
    this.choices.declared = data.declared;
    this.questions.hear(data);
    if (drawing !== this.drawing) {
      this.drawing = drawing;
      this.opened.boxes = new Boxes(data);
      if (isFirst) this.choices.begin(data.declared);
      if (isFirst) this.opened.take(this.choices.values);
      this.opened.fit();
      this.draw();
    }
    const { path } = this.opened;
    if (path === null) this.closed();
    else if (isFirst) this.open(path);
    else {
      this.panel.show();
      this.questions.ask(this.opened, data);
    }
    this.write();
  }

  draw() {
    this.stage.draw();
    const behind = tools(this.root, {
      name: `map-${this.data.model}`,
      numbers: () => tableOfBoxes(this.opened.boxes),
      code: () => this.data.code,
      picture: () => pictureOfMap(this.data, this.stage),
    });
    const { boxes, stack, block } = this.opened,
      last = boxes.blocks(stack) - 1;
    this.goTo.hidden = !drawnBlocks(last + 1, block).includes(null); // every block can be clicked
    this.number.max = String(last);
    this.number.value = String(block);
    this.sizes.setAttribute("aria-pressed", String(this.opened.hasSizes));
    this.foot.replaceChildren(legend(this.stage.pen), this.goTo, this.sizes, behind);
  }

  /** Open the block whose number was typed; what is no number of a block goes back to the open one. @param {string} typed */
  go(typed) {
    const { boxes, stack, block } = this.opened,
      wanted = typed.trim() ? Number(typed) : Number.NaN;
    if (Number.isInteger(wanted)) this.openBlock(stack, Math.max(0, Math.min(wanted, boxes.blocks(stack) - 1)));
    else this.number.value = String(block);
    this.number.focus({ preventScroll: true });
  }

  /** A line on what is under the pointer. @param {string | null} path */
  tell(path) {
    const { boxes } = this.opened;
    const box = path && boxes.get(path);
    if (box) {
      const parameters = parametersOf(box);
      const count = parameters ? ` · ${plural(parameters, "parameter")}` : "";
      this.status.replaceChildren(make("strong", "", `${titleOf(box)}: `), coloured(box.equation), make("span", "", count));
    } else if (path) {
      const { stack, block } = placed(`${path}.x`);
      const count = plural(this.data.counts[stack], "parameter");
      this.status.textContent = `${boxes.blockName(stack, /** @type {number} */ (block))}: ${count}. Click to open it.`;
    } else this.status.textContent = `${this.data.size}. Click a box to open it.`;
  }

  write() {
    this.choices.values = this.opened.chosen;
    this.choices.write();
  }

  // What is open

  /** Open a box, which shows this head of it; null for no other one. @param {string} path @param {number | null} [head] */
  open(path, head = null) {
    if (this.opened.open(path, head)) this.draw();
    else this.stage.light();
    this.changed();
    announce(this.root, `${this.opened.boxes.at(path).name}, ${path}, open below`);
  }

  /** A click on a box opens it, and closes the one that is open. @param {string} path @param {number | null} head */
  clickBox(path, head) {
    if (this.opened.path === path && head === null) return this.shut();
    this.open(path, head);
    reveal(this.panel.element, this.stage.kept(path));
  }

  /** @param {string} stack @param {number} block */
  openBlock(stack, block) {
    const { opened } = this;
    opened.openBlock(stack, block);
    if (opened.path === null) this.closed();
    else opened.open(opened.path, null);
    this.draw();
    if (opened.path !== null) this.changed();
    this.write();
    announce(this.root, `${opened.boxes.blockName(stack, block)} open`);
  }

  /**
   * Open the block before or after the open one; what is then in the place of `path`, undefined where there is no such block.
   *
   * @param {number} step
   * @param {string} path
   * @returns {string | undefined}
   */
  moveToBlock(step, path) {
    const { stack, block, boxes } = this.opened;
    const to = block + step;
    if (to < 0 || to >= boxes.blocks(stack)) return undefined;
    const { block: before, within } = placed(path);
    this.openBlock(stack, to);
    return before === null ? `${stack}blocks.${to}` : `${stack}blocks.${to}.${within}`;
  }

  /** After another box, tensor or page of it was opened. */
  changed() {
    this.panel.show();
    this.write();
    this.questions.ask(this.opened, this.data);
  }

  /** No box is open, which the server is told where it believes that one is. */
  closed() {
    this.panel.element.hidden = true;
    if (!this.data.opened || this.questions.isShut) return;
    this.questions.shut();
    this.send("shut", this.data.text);
  }

  shut() {
    const { path } = this.opened;
    this.opened.path = null; // the block stays
    this.closed();
    this.stage.light();
    this.write();
    this.stage.focus(/** @type {string} */ (path));
  }

  /** Take a guess: each once, until the text has changed. @param {number} guess */
  take(guess) {
    const taken = JSON.stringify({ guess, text: this.data.text });
    if (taken === this.taken) return;
    this.taken = taken;
    this.send("take", taken);
  }
}

export default view(ModelMap);
