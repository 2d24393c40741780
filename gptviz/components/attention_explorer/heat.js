// One head as a heatmap.

import { make } from "../kit/elements.js";
import { legendOf, paintAs, poolOf } from "../kit/heatmap.js";
import { onKeys } from "../kit/keys.js";
import { Square } from "../kit/square.js";
import { MEAN, SHOWS, SIDES } from "./settings.js";

const ROLLOUT =
  "For each block: half the mean of its heads, half the token itself; multiplied from block 0 up. " +
  "The head makes no difference.";

/** One head, queries downwards and keys across; a cell that is chosen opens its arithmetic. */
export class Heat {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.title = make("strong", "title");
    this.about = make("p", "note small about", undefined, { tabindex: "0" }); // on a low window it scrolls
    this.heatmap = new Square();
    this.legend = make("div", "tiny legend");
    this.element = make("div", "right", [this.title, this.heatmap.frame, this.legend, this.about]);
    const { frame } = this.heatmap;
    frame.addEventListener("pointermove", (event) => this.over(event));
    frame.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && explorer.look({}));
    frame.addEventListener("pointerdown", (event) => (this.touched = event.pointerType === "touch"));
    frame.addEventListener("click", (event) => this.clicked(event));
    onKeys(frame, (event) => this.key(event));
  }

  /** The cells' size, and the room around them. */
  resize() {
    const before = this.pool;
    /** How many tokens a pixel of the picture stands for along each axis. @type {number | undefined} */
    this.pool = poolOf(this.heatmap.fit(this.explorer.numbers, this.explorer.heatRoom(this)));
    if (before && before !== this.pool) this.draw();
  }

  /** Another head, or another scale. */
  draw() {
    const { explorer } = this;
    const { numbers, choice, selection } = explorer;
    const { large } = selection;
    const show = SHOWS[choice.show];
    this.title.textContent = selection.name;
    const help = "arrow keys walk the cells, Enter opens the arithmetic of one";
    this.heatmap.frame.setAttribute("aria-label", `Heatmap of ${selection.name}, ${show.name}: ${help}`);
    const pool = numbers.has(large[0]) ? (this.pool ?? 1) : 1;
    const { canvas } = this.heatmap;
    if (numbers.has(large[0])) explorer.paint(canvas, large, choice.show, pool);
    else if (large[1] === MEAN)
      canvas.width = canvas.height = 1; // blank until the numbers are here
    else paintAs(canvas, explorer.grid.of(large).canvas);
    const blank = [numbers.masked ? "may not be read" : "", choice.show === "rest" ? "the first token" : ""].filter(Boolean);
    const unit = selection.unit + (blank.length ? `; blank: ${blank.join(", or ")}` : "");
    this.legend.replaceChildren(...legendOf(explorer.palettes[show.role], ...selection.ends, unit));
    const half = numbers.half ? " Numbers have only three digits: with more digits there would be too much to send." : "";
    const pooled = pool > 1 ? ` The picture is too small for single cells: each dot is the largest of ${pool} × ${pool}.` : "";
    this.about.textContent = (choice.show === "rollout" ? ROLLOUT : numbers.average(large)) + half + pooled;
  }

  /** Outline the row and the column that are looked at. @param {import("./settings.js").Aim | null} aim */
  point(aim) {
    this.heatmap.point(aim ? { [aim.side]: aim.index, [SIDES[aim.side]]: aim.partner } : {});
  }

  /** The cell under the pointer, if it is visible. @param {MouseEvent} event */
  at(event) {
    const cell = this.heatmap.at(event);
    return cell && this.explorer.isVisible(cell.row, cell.column) ? { query: cell.row, key: cell.column } : null;
  }

  /** @param {PointerEvent} event */
  over(event) {
    if (event.pointerType === "touch") return; // a tap does it
    this.explorer.look(this.at(event) ?? {});
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const at = this.at(event);
    if (!at) return;
    const before = this.explorer.hover;
    // A first tap does what hovering does, a second one on the same cell opens it.
    if (this.touched && !(before.query === at.query && before.key === at.key) && !this.explorer.selection.isOpen)
      this.explorer.look(at);
    else this.explorer.open(at.query, at.key);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { explorer } = this;
    const { numbers, choice, hover } = explorer;
    const from = { query: hover.query ?? choice.query ?? numbers.nQuery - 1, key: hover.key ?? choice.key ?? 0 };
    const to = explorer.walked(event.key, from);
    if (to) {
      if (explorer.selection.isOpen) explorer.choose(to);
      explorer.look(to, true);
    } else if (event.key === "Enter" || event.key === " ") {
      if (explorer.isVisible(from.query, from.key)) explorer.open(from.query, from.key);
    } else if (event.key === "Escape") explorer.free();
    else return false;
    return true;
  }
}
