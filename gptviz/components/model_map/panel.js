import { colourAt, diverging, rgb, sequential } from "../kit/colour.js";
import { tools } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { brief, chip, count, shortened } from "../kit/text.js";
import { plural, sizes } from "./boxes.js";
import { MONO, SANS } from "./drawing.js";

const NO_NUMBERS =
  "This step has no numbers of its own that the pass records: it changes what comes in as the equation says. " +
  "See the boxes before and after it.";

/** The box that is open: what it does, its numbers, its lines of source, and the page that shows it. */
export class Panel {
  constructor(map) {
    this.map = map;
    this.root = map.panel;
    this.root.addEventListener("click", (event) => this.clicked(event));
    this.root.addEventListener("change", (event) => {
      if (event.target.dataset.axis) this.move(Number(event.target.dataset.axis), Number(event.target.value));
    });
  }

  get chosen() {
    return this.box.pieces[this.map.piece];
  }

  clicked(event) {
    const { map } = this;
    if (event.target.closest("[data-close]")) return map.shut();
    const piece = event.target.closest("[data-piece]");
    if (piece) {
      const head = this.head();
      map.piece = Number(piece.dataset.piece);
      map.at = new Array(this.chosen.shape.length).fill(0);
      if (head && this.chosen.axes[0] === "head") map.at[0] = Math.min(head, this.chosen.shape[0] - 1);
      return this.changed();
    }
    const step = event.target.closest("[data-step]");
    if (step) {
      const axis = Number(step.dataset.of);
      this.move(axis, map.at[axis] + Number(step.dataset.step));
    }
  }

  /** The head whose numbers are shown, null where there is none to choose. */
  head() {
    return this.chosen?.axes[0] === "head" ? this.map.at[0] : null;
  }

  move(axis, to) {
    const size = this.chosen.shape[axis];
    this.map.at[axis] = Math.max(0, Math.min(to, size - 1));
    this.changed();
  }

  /** After another tensor or page was chosen. */
  changed() {
    this.show(this.box);
    this.map.write();
    this.map.ask();
  }

  show(box) {
    const { map } = this,
      { tensor } = map.data;
    const shown = JSON.stringify([map.shown, box.path, map.piece, map.at, Boolean(tensor && map.wants(tensor))]);
    if (shown === this.shown) return;
    this.shown = shown;
    const held = map.root.getRootNode().activeElement;
    const again =
      held && this.root.contains(held)
        ? ["data-axis", "data-piece", "data-close", "aria-label"].find((name) => held.hasAttribute(name))
        : null;
    const selector = again && `[${again}="${CSS.escape(held.getAttribute(again))}"]`;
    const kept = this.root.querySelector(".lines")?.scrollTop,
      same = this.box?.path === box.path;
    this.box = box;
    this.root.style.setProperty("--own", ROLES[box.role]);
    this.root.setAttribute("aria-label", map.titleOf(box));
    const head = make("div", "row");
    const title = make("h3", "", map.titleOf(box));
    title.append(make("code", "path", box.path));
    head.append(title, make("button", "tool", "Close", { "data-close": "", title: "Close (Escape)" }));
    const about = make("div", "about");
    about.append(make("p", "", box.about), map.coloured(box.equation), this.pieces());
    const columns = make("div", "columns");
    columns.append(about, this.tensor());
    this.root.replaceChildren(head, columns, this.lines());
    if (selector) this.root.querySelector(selector)?.focus({ preventScroll: true });
    const lines = this.root.querySelector(".lines");
    const marked = lines.querySelector(".marked");
    lines.scrollTop = same ? kept : marked ? marked.offsetTop - lines.offsetTop - 40 : 0;
  }

  /** The tensors of the box, to choose among. */
  pieces() {
    const list = make("div", "pieces", undefined, { role: "group", "aria-label": "Tensors of this box" });
    this.box.pieces.forEach((piece, i) => {
      const button = make("button", `piece ${piece.kind}`, undefined, { "data-piece": i, "aria-pressed": i === this.map.piece });
      const kind = { activation: "computed", weight: "W learned", fixed: "fixed" }[piece.kind];
      const more =
        piece.kind === "weight"
          ? piece.parameters
            ? plural(piece.parameters, "parameter")
            : "counted elsewhere: shared"
          : piece.kind === "fixed"
            ? "by a formula"
            : "";
      button.append(
        make("strong", "", piece.symbol),
        make("span", "number", sizes(piece.shape)),
        make("small", "", [kind, more].filter(Boolean).join(", ")),
      );
      button.title = piece.rows ? `${piece.name}, rows ${piece.rows[0]} to ${piece.rows[1] - 1}` : piece.name;
      list.append(button);
    });
    return list;
  }

  lines() {
    const { file, first, last, text, marked } = this.box.lines;
    const place = make("div", "source");
    place.append(make("div", "note", `${file}, lines ${first} to ${last}`));
    const list = make("div", "lines code", undefined, { tabindex: "0", role: "region", "aria-label": "Source" });
    text.split("\n").forEach((line, i) => {
      const row = make("div", marked.includes(first + i) ? "line marked" : "line");
      row.append(make("span", "at", first + i), make("span", "", line));
      list.append(row);
    });
    place.append(list);
    return place;
  }

  // The numbers

  tensor() {
    const place = make("div", "tensor");
    const piece = this.chosen;
    if (!piece) {
      place.append(make("p", "note", NO_NUMBERS));
      return place;
    }
    const { tensor, arrays } = this.map.data;
    const here = tensor && this.map.wants(tensor);
    place.append(this.controls(piece));
    if (!here) {
      place.append(make("p", "note waiting", "Reading the numbers…"));
      return place;
    }
    this.values = arrays.tensor;
    const [smallest, largest, mean, size] = arrays.summary;
    const scroll = make("div", "scroll cells-frame", undefined, {
      tabindex: "0",
      role: "region",
      "aria-label": `Numbers of ${piece.symbol}`,
    });
    scroll.append(this.grid(piece, tensor, smallest, largest));
    place.append(scroll);
    const facts = make("p", "facts number");
    for (const [name, value] of [
      ["min", smallest],
      ["max", largest],
      ["mean", mean],
      ["√ mean square", size],
    ])
      facts.append(make("span", "", name), make("strong", "", brief(value)));
    place.append(facts);
    place.append(this.scaleLine(piece));
    place.append(
      tools(this.map.root, {
        name: `${piece.name}${piece.rows ? `-rows-${piece.rows.join("-")}` : ""}`,
        numbers: () => this.table(piece, tensor),
        code: () => tensor.code,
        picture: () => this.picture(piece, tensor),
      }),
    );
    return place;
  }

  /** Which page of the tensor is shown, and the way to the others. */
  controls(piece) {
    const row = make("div", "controls");
    const { at, data } = this.map;
    const dimensions = piece.shape.length;
    piece.shape.forEach((size, axis) => {
      const leads = axis < dimensions - 2;
      const name = piece.axes[axis];
      const group = make("span", "axis");
      if (leads) {
        const select = make("select", "", undefined, { "data-axis": axis, "data-of": axis, "aria-label": name });
        for (let i = 0; i < size; i++) select.append(make("option", "", `${name} ${i}`, { value: i }));
        select.value = at[axis];
        group.append(select);
      } else {
        const page = this.wraps(piece) ? data.page * data.page : data.page,
          last = Math.min(size, at[axis] + page) - 1;
        const is = axis === dimensions - 1 && dimensions > 1 ? "columns" : "rows";
        const step = (sign, by, disabled) => {
          const button = make("button", "tool", sign, {
            "data-step": by,
            "data-of": axis,
            "aria-label": `${by < 0 ? "previous" : "next"} ${is}`,
          });
          button.disabled = disabled;
          return button;
        };
        group.append(
          step(is === "columns" ? "←" : "↑", -page, at[axis] <= 0),
          make("span", "number", `${name} ${at[axis]}–${last} of ${count(size)}`),
          step(is === "columns" ? "→" : "↓", page, last >= size - 1),
        );
      }
      row.append(group);
    });
    return row;
  }

  /** Whether a vector is written in lines like a text: its numbers have no names. */
  wraps(piece) {
    return piece.shape.length === 1 && !["vocabulary", "label", "token", "source token", "head"].includes(piece.axes[0]);
  }

  /** What an index of an axis is called. */
  nameOf(piece, tensor, axis, index) {
    const labels = tensor.labels[axis];
    if (labels) return labels[tensor.whole ? index : index - tensor.at[axis]];
    const name = piece.axes[axis],
      { d_head: size, context } = this.map.data;
    if (name === "head · d_head") return `h${Math.floor(index / size)}·${index % size}`;
    if (name === "distance") return String(index - context + 1).replace("-", "−");
    return String(index);
  }

  /** The number at these indices, NaN where it is not here. */
  valueAt(tensor, indices) {
    const { values } = this;
    if (!tensor.whole)
      indices = indices.slice(-values.shape.length).map((index, i) => index - tensor.at.at(i - values.shape.length));
    return values[indices.reduce((place, index, axis) => place * values.shape[axis] + index, 0)];
  }

  /** The cells of the page: names of rows and columns, and where each number stands. */
  cells(piece, tensor) {
    const { page } = this.map.data,
      at = [...this.map.at],
      lead = at.slice(0, -2);
    const span = (axis) => [...Array(Math.max(0, Math.min(page, piece.shape[axis] - at[axis]))).keys()].map((i) => at[axis] + i);
    const name = (axis) => (index) => this.nameOf(piece, tensor, axis, index);
    if (piece.shape.length > 1) {
      const [down, across] = [piece.shape.length - 2, piece.shape.length - 1];
      return {
        rows: span(down).map((row) => ({
          name: name(down)(row),
          number: row,
          cells: span(across).map((column) => [...lead, row, column]),
        })),
        columns: span(across).map((index) => ({ name: name(across)(index), number: index })),
      };
    }
    if (!this.wraps(piece))
      return {
        rows: span(0).map((row) => ({ name: name(0)(row), number: row, cells: [[row]] })),
        columns: [{ name: piece.symbol, number: null }],
      };
    const rows = [];
    for (let from = at[0]; from < Math.min(piece.shape[0], at[0] + page * page); from += page) {
      rows.push({
        name: String(from),
        number: from,
        cells: [...Array(Math.min(page, piece.shape[0] - from)).keys()].map((i) => [from + i]),
      });
    }
    return { rows, columns: [...Array(page).keys()].map((i) => ({ name: `+${i}`, number: i })) };
  }

  isShare(piece) {
    return piece.kind === "activation" && piece.symbol === "pattern";
  }

  /** The place of a number on its scale, 0 … 1. */
  placeOf(piece) {
    const [smallest, largest] = this.map.data.arrays.summary;
    if (this.isShare(piece)) return (value) => value;
    const most = Math.max(Math.abs(smallest), Math.abs(largest)) || 1;
    return (value) => 0.5 + value / most / 2;
  }

  scaleOf(piece) {
    return this.isShare(piece) ? sequential(ROLES.pattern, this.root) : diverging(this.root);
  }

  /** A colour, and what is readable on it. */
  tinted(table, place) {
    if (!Number.isFinite(place)) return ["", ""];
    const ground = colourAt(table, place),
      [r, g, b] = rgb(ground);
    return [ground, 0.3 * r + 0.6 * g + 0.1 * b > 140 ? "#111820" : "#FFFFFF"];
  }

  /** Whether the mask hides later keys from a query. */
  hides(piece) {
    return this.isShare(piece) && this.map.data.mask === "causal" && !/encoder|cross/.test(piece.name);
  }

  /** A number as it stands in its cell: none where the mask hides a key from a query. */
  written(piece, indices, value) {
    if (this.hides(piece) && indices.at(-1) > indices.at(-2)) return "";
    return value === 0 ? "0" : brief(value);
  }

  grid(piece, tensor) {
    const { rows, columns } = this.cells(piece, tensor);
    const scale_ = this.scaleOf(piece),
      place = this.placeOf(piece);
    const table = make("table", "cells");
    const head = make("tr");
    const [down, across] = piece.shape.length > 1 ? piece.axes.slice(-2) : [piece.axes[0], ""];
    head.append(make("th", "corner", "", { "aria-label": `${down} down, ${across} across` }));
    for (const { name, number } of columns) {
      const cell = make("th", "", undefined, { scope: "col" });
      cell.append(chip(shortened(name, columns.length > 6 ? 6 : 16)));
      if (number !== null && name !== String(number)) cell.title = `${across || down} ${number}: ${name}`;
      head.append(cell);
    }
    table.append(head);
    for (const row of rows) {
      const line = make("tr");
      const header = make("th", "", undefined, { scope: "row" });
      header.append(chip(shortened(row.name, 10)));
      if (row.name !== String(row.number)) header.prepend(make("small", "", `${row.number} `));
      line.append(header);
      row.cells.forEach((indices) => {
        const value = this.valueAt(tensor, indices);
        const cell = make("td", "number", this.written(piece, indices, value));
        if (cell.textContent) [cell.style.background, cell.style.color] = this.tinted(scale_, place(value));
        cell.title = cell.textContent ? String(value) : "hidden by the mask";
        cell.dataset.value = value;
        line.append(cell);
      });
      table.append(line);
    }
    return table;
  }

  /** The numbers at the ends of the scale. */
  ends(piece) {
    const [smallest, largest] = this.map.data.arrays.summary,
      most = Math.max(Math.abs(smallest), Math.abs(largest));
    return this.isShare(piece) ? ["0", "1"] : [brief(-most), brief(most)];
  }

  scaleLine(piece) {
    const line = make("div", "scale-line note");
    const bar = make("span", "bar");
    const table = this.scaleOf(piece);
    bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((at) => colourAt(table, at)).join(", ")})`;
    const [low, high] = this.ends(piece);
    const means = this.isShare(piece)
      ? `share of the row${this.hides(piece) ? "; what the mask hides counts as 0" : ""}`
      : `${piece.symbol}, up to the largest of all ${count(piece.shape.reduce((all, size) => all * size, 1))} numbers`;
    line.append(make("span", "number", low), bar, make("span", "number", high), make("span", "", means));
    return line;
  }

  /** All numbers that are here, one a row. */
  table(piece, tensor) {
    const named = piece.axes.map(
      (_, axis) => Boolean(tensor.labels[axis]) || ["head · d_head", "distance"].includes(piece.axes[axis]),
    );
    const columns = piece.axes.flatMap((name, axis) => (named[axis] ? [`${name} position`, name] : [name]));
    const rows = [];
    const { shape: size } = this.values;
    const missing = piece.shape.length - size.length;
    const indices = new Array(size.length).fill(0);
    for (let i = 0; i < this.values.length; i++) {
      const own = indices.map((index, axis) => (tensor.whole ? index : index + tensor.at[axis + missing]));
      const all = [...(tensor.whole ? [] : tensor.at.slice(0, missing)), ...own];
      rows.push([
        ...all.flatMap((index, axis) => (named[axis] ? [index, this.nameOf(piece, tensor, axis, index)] : [index])),
        this.values[i],
      ]);
      for (let axis = size.length - 1; axis >= 0 && ++indices[axis] === size[axis]; axis--) indices[axis] = 0;
    }
    return { columns: [...columns, piece.symbol], rows };
  }

  /** The page of the tensor as a drawing. */
  picture(piece, tensor) {
    const { rows, columns } = this.cells(piece, tensor),
      { map } = this;
    const w = 54,
      h = 20,
      left = 96,
      top = 50;
    const lead = piece.shape.length > 2 ? `, ${piece.axes[0]} ${map.at[0]}` : "";
    const width = left + w * columns.length + 12,
      height = top + h * rows.length + 30;
    const picture = shape("svg", { width: Math.max(width, 480), height, "font-family": SANS });
    picture.append(shape("rect", { width: Math.max(width, 480), height, fill: map.colours.ground }));
    picture.append(
      map.text(
        12,
        20,
        `${map.data.model}: ${piece.name}${piece.rows ? ` [${piece.rows.join(":")}]` : ""} ${sizes(piece.shape)}${lead}`,
        { anchor: "start", size: 13, weight: 650 },
      ),
    );
    const scale_ = this.scaleOf(piece),
      place = this.placeOf(piece),
      [low, high] = this.ends(piece);
    columns.forEach(({ name }, i) =>
      picture.append(map.text(left + w * (i + 0.5), top - 6, shortened(name, 7), { size: 11, font: MONO })),
    );
    rows.forEach((row, i) => {
      picture.append(map.text(left - 8, top + h * i + 14, shortened(row.name, 10), { size: 11, anchor: "end", font: MONO }));
      row.cells.forEach((indices, j) => {
        const value = this.valueAt(tensor, indices),
          [ground, ink] = this.tinted(scale_, place(value));
        const text = this.written(piece, indices, value);
        if (text)
          picture.append(
            shape("rect", { x: left + w * j, y: top + h * i, width: w - 1, height: h - 1, fill: ground }),
            map.text(left + w * (j + 0.5), top + h * i + 14, text, { size: 11, fill: ink }),
          );
      });
    });
    const [smallest, largest, mean, size] = map.data.arrays.summary;
    const facts = `min ${brief(smallest)}, max ${brief(largest)}, mean ${brief(mean)}, root mean square ${brief(size)}`;
    picture.append(map.text(12, height - 9, `${facts}; colours from ${low} to ${high}`, { anchor: "start", size: 11 }));
    return picture;
  }
}
