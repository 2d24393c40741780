// The circuit of a guess: nodes are buttons, edges are drawn behind them. Text of a model is set by textContent alone.

import { copyOf } from "../kit/copy.js";
import { tools } from "../kit/details.js";
import { make, shape, TabStop } from "../kit/elements.js";
import { beside, Floating } from "../kit/floating.js";
import { picture, textOf } from "../kit/picture.js";
import { rem, USUAL } from "../kit/size.js";
import { brief, chip, percent, plural, shortened, spoken } from "../kit/text.js";
import { view } from "../kit/view.js";
import { curve, GAP, LABELS, layout, NODE, neighbour, thickness } from "./layout.js";

/** @typedef {import("./layout.js").Node} Node @typedef {import("./layout.js").Edge} Edge */
/**
 * @typedef {object} Payload
 * @property {string} of
 * @property {string} title
 * @property {string} model
 * @property {string[]} tokens
 * @property {boolean} spaced whether every token is a word
 * @property {string[]} settings what a reader has chosen
 * @property {number} share
 * @property {string} answer
 * @property {string | null} against
 * @property {Node[]} nodes
 * @property {Edge[]} edges
 * @property {string} code
 * @property {number | null} opened
 */

// How wide a letter of a token is at most, in pixels of a page of the usual size; longer tokens stand whole on the card.
const LETTER = 8.5;
// The most characters of the name of a node: the logit's is made of tokens.
const LONGEST = 10;
// Lines of a card.
const MOST_LINES = 5;
const WAYS = {
  value: "value (what is read)",
  key: "key (why it is chosen)",
  query: "query (what chooses)",
  mlp: "input",
  logit: "logit",
};

/** Pixels of a page of the usual size, for CSS. @param {number} pixels */
const rems = (pixels) => `${pixels / USUAL}rem`;

/** A number with its sign. @param {number} number */
const signed = (number) => (number > 0 ? "+" : "") + brief(number);

class Graph {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {};
    /** @type {Payload} */
    this.data = /** @type {any} */ (null);
    /** @type {import("./layout.js").Layout} */
    this.layout = /** @type {any} */ (null);
    /** @type {HTMLButtonElement[]} */
    this.nodes = [];
    /** @type {SVGPathElement[]} */
    this.edges = [];
    /** @type {number | null} */
    this.near = null; // the node whose card is open
    this.stop = new TabStop();
    this.card = new Floating();
    this.card.element.id = "card";
    this.frame = make("div", "frame", undefined, { tabindex: "-1" });
    this.stage = make("div", "stage", undefined, { role: "group" });
    this.legend = make("div", "legend");
    this.wider = make("button", "tool wider", "The graph goes on to the right: show the logit");
    this.wider.addEventListener("click", () => (this.frame.scrollLeft = this.frame.scrollWidth));
    this.frame.append(this.stage);
    this.room = 0;
    this.resized = new ResizeObserver(() => {
      if (this.data && this.roomNow() !== this.room) this.draw();
    });
    this.resized.observe(this.frame);
    const details = tools(root, {
      name: "circuit",
      numbers: () => this.numbers(),
      code: () => this.data.code,
      picture: () => this.picture(),
    });
    root.replaceChildren(this.frame, this.legend, details, this.card.element);
    this.explain();
    this.listen();
  }

  explain() {
    /** @param {string} look @param {string} words */
    const entry = (look, words) => {
      const line = shape("svg", { class: `sample ${look}`, viewBox: "0 0 34 8", "aria-hidden": "true" });
      line.append(shape("path", { d: "M0 4H34" }));
      const item = make("span", "entry");
      item.append(line, make("span", "", words));
      return item;
    };
    this.legend.append(
      entry("edge up", "adds"),
      entry("edge down", "takes away"),
      make("span", "entry", "width: how much"),
      entry("edge value", "V value, MLP, logit"),
      entry("edge key", "K key"),
      entry("edge query", "Q query"),
      this.wider,
    );
  }

  listen() {
    const { stage } = this;
    /** @param {Event} event */
    const at = (event) => {
      const node = /** @type {Element} */ (event.target).closest(".node");
      return node instanceof HTMLElement ? Number(node.dataset.index) : null;
    };
    stage.addEventListener("pointerover", (event) => this.look(at(event)));
    stage.addEventListener("pointerleave", () => this.look(null));
    stage.addEventListener("focusin", (event) => {
      const i = at(event);
      if (i === null) return;
      this.stop.reach(this.nodes[i]);
      this.look(i);
    });
    stage.addEventListener("focusout", () => this.look(null));
    this.frame.addEventListener("scroll", () => {
      stage.style.setProperty("--scrolled", `${this.frame.scrollLeft}px`); // the names of the layers stay in sight
      if (this.near !== null) this.card.open(this.nodes[this.near], beside);
    });
    stage.addEventListener("click", (event) => {
      const i = at(event);
      if (i !== null) this.send("open", { node: i, of: this.data.of });
    });
    stage.addEventListener("keydown", (event) => {
      const i = at(event);
      if (i === null || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" || event.key === " ") return event.stopPropagation();
      if (event.key === "Escape") this.look(null);
      else if (event.key.startsWith("Arrow")) this.stop.focus(this.nodes[neighbour(this.layout, i, event.key)], this.frame);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  close() {
    this.resized.disconnect();
    this.card.close();
  }

  /** The width of the frame, in pixels of a page of the usual size. */
  roomNow() {
    return Math.floor((this.frame.clientWidth * USUAL) / rem());
  }

  /** @param {Payload} data */
  show(data) {
    const isNew = data.of !== this.data?.of;
    this.data = data;
    if (isNew) this.draw();
    this.nodes.forEach((node, i) => {
      node.classList.toggle("opened", i === data.opened);
      node.setAttribute("aria-pressed", String(i === data.opened));
    });
  }

  draw() {
    const { data, stage } = this;
    const focused = this.nodes.findIndex((node) => node.matches(":focus"));
    this.near = null;
    this.card.close();
    this.root.classList.remove("looking");
    this.room = this.roomNow();
    this.layout = layout(data.nodes, this.room);
    this.wider.hidden = this.layout.width <= this.room;
    const { width, height, rows, columns } = this.layout;
    const largest = Math.max(...data.edges.map(({ value }) => Math.abs(value)));
    const lines = shape("svg", { class: "lines", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    this.edges = data.edges.map((edge) => {
      const look = `edge ${edge.value < 0 ? "down" : "up"} ${edge.kind}`;
      return shape("path", {
        class: look,
        d: curve(this.layout, edge),
        "stroke-width": thickness(edge.value, largest).toFixed(2),
      });
    });
    // The widest first, so that thin ones stay on top.
    const order = data.edges.map((_, i) => i).sort((a, b) => Math.abs(data.edges[b].value) - Math.abs(data.edges[a].value));
    lines.append(...order.map((i) => this.edges[i]));
    stage.style.width = lines.style.width = rems(width);
    stage.style.height = lines.style.height = rems(height);
    stage.setAttribute(
      "aria-label",
      `${data.title}: ${plural(data.nodes.length, "node")} and ${plural(data.edges.length, "edge")}`,
    );
    this.nodes = data.nodes.map((node, i) => this.nodeOf(node, i));
    const labels = rows.map(({ title, y, height: high }) => {
      const label = make("div", "layer", title);
      Object.assign(label.style, { top: rems(y), height: rems(high), width: rems(LABELS) });
      return label;
    });
    const bottom = rows[rows.length - 1].y + rows[rows.length - 1].height;
    const tokens = columns.flatMap(({ place, left, width: wide, afterGap }) => {
      const box = make("div", "token");
      Object.assign(box.style, { left: rems(left), width: rems(wide), top: rems(bottom + 6) });
      box.append(chip(shortened(data.tokens[place], Math.floor(wide / LETTER))), make("span", "place", String(place)));
      if (!afterGap) return [box];
      const gap = make("div", "gap", "…", { "aria-hidden": "true" });
      Object.assign(gap.style, { left: rems(left - GAP), width: rems(GAP), top: rems(bottom + 6) });
      return [gap, box];
    });
    stage.replaceChildren(lines, ...tokens, ...this.nodes, ...labels);
    this.frame.scrollLeft = 0;
    this.stop.reach(this.nodes[Math.max(0, focused)]);
    if (focused >= 0) this.stop.focus(this.nodes[focused], this.frame);
  }

  /** @param {Node} node @param {number} i */
  nodeOf(node, i) {
    const { data } = this;
    const words = {
      embed: "token",
      positions: "position",
      attention: `head ${node.index}`,
      mlp: "MLP",
      logit: data.against === null ? data.answer : `${data.answer} − ${data.against}`,
    }[node.part];
    const button = make("button", `node ${node.part}`, undefined, { "data-index": i, tabindex: "-1" });
    button.append(make("span", "name", shortened(words, LONGEST)));
    if (node.part === "attention") {
      const ports = make("span", "ports", undefined, { "aria-hidden": "true" });
      ports.append(make("span", "q", "Q"), make("span", "k", "K"), make("span", "v", "V"));
      button.append(ports);
    } else button.append(make("span", "gives", signed(node.value)));
    const { x, y, width } = this.layout.nodes[i];
    Object.assign(button.style, { left: rems(x), top: rems(y), width: rems(width), height: rems(NODE.height) });
    const place = `position ${node.place}, ${spoken(data.tokens[node.place])}`;
    const gives = node.part === "logit" ? `is ${brief(node.value)}` : `gives ${signed(node.value)} of the logit`;
    button.setAttribute("aria-label", `${node.title} at ${place}: ${gives}; ${this.edgesInWords(i)}`);
    return button;
  }

  /** @param {number} i */
  edgesInWords(i) {
    const into = this.data.edges.filter((edge) => edge.to === i).length,
      out = this.data.edges.filter((edge) => edge.from === i).length;
    return `${plural(into, "edge")} from below, ${out} upwards`;
  }

  /** Bring a node and its edges out, and open its card; null for none. @param {number | null} i */
  look(i) {
    const { data, edges, nodes, root } = this;
    this.near = i;
    root.classList.toggle("looking", i !== null);
    const near = new Set([i]);
    data.edges.forEach((edge, e) => {
      const isOwn = edge.from === i || edge.to === i;
      edges[e].classList.toggle("own", isOwn);
      if (isOwn) near.add(edge.from).add(edge.to);
    });
    nodes.forEach((node, n) => {
      node.classList.toggle("near", near.has(n));
      if (n === i) node.setAttribute("aria-describedby", "card");
      else node.removeAttribute("aria-describedby");
    });
    if (i === null) return this.card.close();
    this.fill(i);
    this.card.open(nodes[i], beside);
  }

  /** @param {number} i */
  fill(i) {
    const { data, card } = this;
    const node = data.nodes[i];
    const head = make("strong", "", node.title[0].toUpperCase() + node.title.slice(1));
    const where = make("div", "where");
    where.append(make("span", "", `position ${node.place} `), chip(data.tokens[node.place]));
    const gives = make("div", "", node.part === "logit" ? `is ${brief(node.value)}` : `gives ${signed(node.value)} in the graph`);
    /** @param {string} title @param {Edge[]} edges @param {"from" | "to"} end */
    const list = (title, edges, end) => {
      if (!edges.length) return [];
      const sorted = [...edges].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
      const table = make("table");
      for (const edge of sorted.slice(0, MOST_LINES)) {
        const other = data.nodes[edge[end]];
        const row = make("tr");
        const at = other.part === "logit" ? "" : ` at ${other.place} `;
        const name = make("td", "", other.title + at);
        if (other.part !== "logit") name.append(chip(data.tokens[other.place]));
        row.append(make("td", "number", signed(edge.value)), name, make("td", "", WAYS[edge.kind]));
        table.append(row);
      }
      const more = sorted.length > MOST_LINES ? [make("div", "note", `and ${sorted.length - MOST_LINES} more`)] : [];
      return [make("div", "heading", title), table, ...more];
    };
    card.element.replaceChildren(
      ...[head, where, gives],
      ...list(
        "It reads",
        data.edges.filter((edge) => edge.to === i),
        "from",
      ),
      ...list(
        "It adds to",
        data.edges.filter((edge) => edge.from === i),
        "to",
      ),
    );
  }

  numbers() {
    const { nodes, edges, tokens } = this.data;
    /** @param {number} i */
    const end = (i) => [nodes[i].name.replace(/@\d+$/, ""), nodes[i].place, tokens[nodes[i].place]];
    const rows = edges.map((edge) => [...end(edge.from), ...end(edge.to), edge.kind, edge.value, edge.share]);
    const columns = [
      "from",
      "position",
      "token",
      "to",
      "position read at",
      "token read at",
      "kind",
      "logit",
      "share of its kind",
    ];
    return { columns, rows };
  }

  picture() {
    const { data, frame, root } = this;
    this.look(null);
    root.classList.add("whole"); // all that scrolls is in the picture
    const { drawing, width, height } = copyOf([frame, this.legend]);
    root.classList.remove("whole");
    const settings = [
      ...data.settings,
      `${plural(data.nodes.length, "node")}, ${plural(data.edges.length, "edge")}`,
      `${percent(data.share)} traced back`,
    ];
    const heading = { title: data.title, model: data.model, prompt: textOf(data.tokens, data.spaced), settings };
    return picture(root, heading, drawing, { width, height });
  }
}

export default view(Graph);
