// The circuit of a guess: nodes are buttons, edges are drawn behind them. Text of a model is only set as textContent.

import { chip } from "../kit/chips.js";
import { Choices } from "../kit/choices.js";
import { copyOf } from "../kit/copy.js";
import { announce, tools } from "../kit/details.js";
import { button, closest, make, shape, TabStop } from "../kit/elements.js";
import { beside, Floating } from "../kit/floating.js";
import { onKeys } from "../kit/keys.js";
import { picture, textOf } from "../kit/picture.js";
import { rem, USUAL } from "../kit/size.js";
import { brief, percent, plural, shortened, spoken } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { grouped, nameOf } from "./groups.js";
import { curve, GAP, LABELS, layout, NODE, neighbour, PORTS, placeOfNumber, thickness } from "./layout.js";

/** @typedef {import("./layout.js").Node} Node @typedef {import("./layout.js").Edge} Edge */
/** @typedef {import("./groups.js").Shown} Shown @typedef {import("./groups.js").Group} Group */
/**
 * @typedef {{
 *   of: string, title: string, model: string, tokens: string[], spaced: boolean, settings: string[], share: number, answer: string,
 *   against: string | null, nodes: Node[], edges: Edge[], code: string, opened: number | null, format: string, number: number,
 *   choices: Record<string, unknown>, declared: import("../kit/values.js").Declared, asked: Record<string, unknown> | null,
 * }} Payload what the server sends: see `payload` in __init__.py
 */

// How wide a letter of a token is at most, in pixels of a page of the usual size; longer tokens stand whole on the card.
const LETTER = 8.5;
// The most characters of the name of a node (the logit's is made of tokens), and of a wide one.
const LONGEST = 10,
  LONGEST_WIDE = 20;
// About half of the number on a line, in pixels of a page of the usual size.
const NUMBER = { dx: 22, dy: 9 };
// Lines of a card.
const MOST_LINES = 5;
const WAYS = {
  value: "value (what is read)",
  key: "key (why it is chosen)",
  query: "query (what chooses)",
  mlp: "input",
  logit: "logit",
};

// The colour of each part, by its role.
const COLOURS = {
  embed: "stream",
  positions: "stream",
  attention: "pattern",
  mlp: "mlp",
  dictionary: "mlp",
  missed: "weight",
  logit: "output",
  group: "value",
};
/** @type {[kind: "value" | "key" | "query", letter: string][]} */
const LETTERS = [
  ["value", "V"],
  ["key", "K"],
  ["query", "Q"],
];

/** Pixels of a page of the usual size, for CSS. @param {number} pixels */
const rems = (pixels) => `${pixels / USUAL}rem`;

/** How wide a line is. @param {SVGPathElement} line */
const thick = (line) => Number(line.getAttribute("stroke-width"));

/** A number with its sign. @param {number} number */
const signed = (number) => (number > 0 ? "+" : "") + brief(number);

class Graph extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {Payload} */
    this.data = /** @type {any} */ (null);
    /** @type {import("./layout.js").Layout} */
    this.layout = /** @type {any} */ (null);
    /** @type {HTMLButtonElement[]} */
    this.nodes = [];
    /** @type {SVGPathElement[]} */
    this.edges = [];
    /** @type {{ nodes: Shown[], edges: Edge[] }} */
    this.graph = { nodes: [], edges: [] }; // with groups in place of their members
    /** @type {number | null} */
    this.opened = null; // the number of a node of the payload, as the server has it or is about to
    /** @type {Choices<{ pinned: string[] | null, groups: Group[] | null }>} */
    this.choices = new Choices();
    /** @type {number | null} */
    this.near = null; // the node whose card is open
    this.offered = ""; // what the buttons that pin and group say
    this.stop = new TabStop();
    this.card = new Floating();
    this.card.element.id = "card";
    this.stage = make("div", "stage", undefined, { role: "group" });
    this.frame = make("div", "frame", [this.stage], { tabindex: "-1" });
    this.unit = make("span", "aligned entry unit");
    const toOtherEnd = () => (this.frame.scrollLeft = this.isAtEnd ? 0 : this.frame.scrollWidth);
    this.wider = button("", toOtherEnd, { class: "tool wider" });
    this.arranging = make("div", "tools arranging", undefined, { role: "group", "aria-label": "Pins and groups" });
    this.pin = button("", () => this.opened !== null && this.togglePin(this.data.nodes[this.opened].name));
    this.name = make("input", "tool", undefined, { "aria-label": "Name of the group", placeholder: "Name", maxlength: 24 });
    this.name.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.group();
    });
    this.join = button("", () => this.group());
    this.room = 0;
    this.whenResized(() => this.data && this.roomNow() !== this.room && this.draw(), this.frame);
    const details = tools(root, {
      name: "circuit",
      numbers: () => this.numbers(),
      code: () => this.data.code,
      picture: () => this.picture(),
      file: () => this.file(),
    });
    this.legend = make("div", "small legend", this.explained());
    root.replaceChildren(this.frame, this.legend, this.arranging, details, this.card.element);
    this.listen();
  }

  /** What the looks of lines mean. */
  explained() {
    /** @param {string} look @param {string} words */
    const entry = (look, words) => {
      const path = shape("path", { d: "M0 4H34" });
      const line = shape("svg", { class: `sample edge ${look}`, viewBox: "0 0 34 8", "aria-hidden": "true" }, path);
      return make("span", "aligned entry", [line, make("span", "", words)]);
    };
    return [
      ...[
        this.unit,
        entry("up", "adds"),
        entry("down", "takes away"),
        make("span", "aligned entry", "width: how much; full colour: what the sentence above names"),
      ],
      ...[entry("value", "V value, MLP, logit"), entry("key", "K key"), entry("query", "Q query"), this.wider],
    ];
  }

  listen() {
    const { stage } = this;
    /** @param {Event} event */
    const at = (event) => {
      const node = closest(event, ".node");
      return node && Number(node.dataset.index);
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
      this.sayWider();
      if (this.near !== null) this.card.open(this.nodes[this.near], beside);
    });
    stage.addEventListener("click", (event) => {
      const i = at(event);
      if (i !== null) this.open(i);
    });
    onKeys(stage, (event) => {
      const i = at(event);
      if (i === null) return false;
      const to = neighbour(this.layout, i, event.key);
      if (to !== null) this.stop.focus(this.nodes[to], this.frame);
      else if (event.key === "Escape") this.look(null);
      else if (event.key === "p") this.togglePin(this.graph.nodes[i].name);
      else return false;
      return true;
    });
  }

  /** The width of the frame, in pixels of a page of the usual size. */
  roomNow() {
    return Math.floor((this.frame.clientWidth * USUAL) / rem());
  }

  /** @param {Payload} data */
  show(data) {
    const isFirst = !this.data,
      isNew = data.of !== this.data?.of;
    this.data = data;
    this.opened = data.opened;
    if (isFirst) this.choices.begin(data.declared);
    this.choices.declared = data.declared;
    const asked = this.choices.asked(data);
    if (asked) {
      this.choices.take(asked);
      this.choices.write();
    }
    if (isNew || asked) this.draw();
    else this.update();
  }

  // Pins and groups

  /** The names of the pinned nodes. */
  get pinned() {
    return this.choices.values.pinned ?? [];
  }

  get groups() {
    return this.choices.values.groups ?? [];
  }

  /** @param {{ pinned?: string[], groups?: Group[] }} changes */
  arrange({ pinned = this.pinned, groups = this.groups }) {
    const isSame = groups.length === this.groups.length;
    this.choices.values = { pinned: pinned.length ? pinned : null, groups: groups.length ? groups : null };
    this.choices.write();
    if (isSame) this.update();
    else this.draw();
  }

  /** Pin a node, or let it go. The edges of a pinned node stay in front, whatever is looked at. @param {string} name */
  togglePin(name) {
    const node = this.graph.nodes.find((one) => one.name === name);
    if (!node || node.part === "logit" || node.part === "group") return;
    const isPinned = this.pinned.includes(name);
    this.arrange({ pinned: isPinned ? this.pinned.filter((one) => one !== name) : [...this.pinned, name] });
    announce(this.root, `${node.title} at position ${node.place} is ${isPinned ? "no longer" : "now"} pinned`);
  }

  /** The pinned nodes that are shown. */
  get pins() {
    return this.graph.nodes.filter(({ name, part }) => part !== "group" && this.pinned.includes(name)).map(({ name }) => name);
  }

  /** Let the pinned nodes become a group. */
  group() {
    const members = this.pins,
      name = nameOf(this.name.value) || `group ${this.groups.length + 1}`;
    if (members.length < 2) return;
    this.name.value = "";
    this.arrange({
      pinned: this.pinned.filter((one) => !members.includes(one)),
      groups: [...this.groups, { name, members }],
    });
    announce(this.root, `${members.length} boxes are now the group ${name}`);
  }

  /** What is open, pinned or grouped has changed: so do the buttons that pin, group and ungroup. */
  update() {
    const { data, pins } = this;
    this.mark();
    const node = this.opened === null ? null : data.nodes[this.opened];
    const canBePinned = node !== null && this.graph.nodes.some(({ name, part }) => name === node.name && part !== "logit");
    this.pin.textContent = !canBePinned
      ? "Pin: choose a box first"
      : `${this.pinned.includes(node.name) ? "Unpin" : "Pin"} ${node.title} at ${node.place}`;
    this.pin.title = "The lines of a pinned box stay in front; several pinned boxes can become a group (key P)";
    this.pin.disabled = !canBePinned;
    this.join.textContent = `Group the ${pins.length} pinned boxes`;
    const groups = this.groups.map(({ name }, g) =>
      button(`Ungroup ${name}`, () => this.arrange({ groups: this.groups.filter((_, n) => n !== g) })),
    );
    const parts = [this.pin, ...(pins.length > 1 ? [this.name, this.join] : []), ...groups];
    // Only what changed is replaced: a reader may be typing the name of a group.
    const offered = parts.map(({ textContent }) => textContent).join("\n");
    if (offered !== this.offered) this.arranging.replaceChildren(...parts);
    this.offered = offered;
  }

  // Drawing

  /** What the numbers of nodes are parts of. */
  get answer() {
    const { answer, against } = this.data;
    return against === null ? answer : `${answer} − ${against}`;
  }

  get isAtEnd() {
    return this.frame.scrollLeft + this.frame.clientWidth > this.frame.scrollWidth - 2;
  }

  sayWider() {
    const words = this.isAtEnd ? "left: show its beginning" : "right: show the logit";
    this.wider.textContent = `The graph goes on to the ${words}`;
  }

  draw() {
    const { data, stage } = this;
    this.graph = grouped(data.nodes, data.edges, this.groups);
    const { nodes, edges } = this.graph;
    const focused = this.nodes.findIndex((node) => node.matches(":focus"));
    this.near = null;
    this.card.close();
    this.room = this.roomNow();
    this.layout = layout(nodes, this.room);
    this.wider.hidden = this.layout.width <= this.room;
    const { width, height, rows, columns } = this.layout;
    const largest = Math.max(...edges.map(({ value }) => Math.abs(value)));
    const lines = shape("svg", { class: "overlay lines", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    this.edges = edges.map((edge) =>
      shape("path", {
        class: `edge ${edge.value < 0 ? "down" : "up"} ${edge.kind}${edge.main ? " main" : ""}`,
        d: curve(this.layout, edge),
        "stroke-width": thickness(edge.value, largest).toFixed(2),
        style: `--strength: ${largest > 0 ? (Math.abs(edge.value) / largest).toFixed(3) : 0}`,
      }),
    );
    // The widest first, so that thin ones stay on top.
    const order = edges.map((_, i) => i).sort((a, b) => Math.abs(edges[b].value) - Math.abs(edges[a].value));
    lines.append(...order.map((i) => this.edges[i]));
    stage.style.width = lines.style.width = rems(width);
    stage.style.height = lines.style.height = rems(height);
    stage.setAttribute("aria-label", `${data.title}: ${plural(nodes.length, "node")} and ${plural(edges.length, "edge")}`);
    const logit = nodes.find(({ part }) => part === "logit");
    const all = logit ? ` (${brief(logit.value)})` : "";
    this.unit.textContent = `number on a line: how much of ${this.answer}${all} comes along it`;
    const named = edges.filter(({ main }) => main);
    this.unit.hidden = !named.length;
    const numbers = named.map((edge) => {
      const { x, y } = placeOfNumber(this.layout, edge, NUMBER.dx, NUMBER.dy);
      const number = make("span", "on-line", signed(edge.value), { "aria-hidden": "true" });
      Object.assign(number.style, { left: rems(x), top: rems(y) });
      return number;
    });
    this.nodes = nodes.map((node, i) => this.nodeOf(node, i));
    const labels = rows.map(({ title, y, height: high }) => {
      const label = make("div", "aligned layer", title);
      Object.assign(label.style, { top: rems(y), height: rems(high), width: rems(LABELS) });
      return label;
    });
    const bottom = rows[rows.length - 1].y + rows[rows.length - 1].height;
    const tokens = columns.flatMap(({ place, left, width: wide, afterGap }) => {
      const name = chip(shortened(data.tokens[place], Math.floor(wide / LETTER)));
      const box = make("div", "token", [name, make("span", "faint tiny place", String(place))]);
      Object.assign(box.style, { left: rems(left), width: rems(wide), top: rems(bottom + 6) });
      if (!afterGap) return [box];
      const gap = make("div", "faint tiny gap", "…", { "aria-hidden": "true" });
      Object.assign(gap.style, { left: rems(left - GAP), width: rems(GAP), top: rems(bottom + 6) });
      return [gap, box];
    });
    stage.replaceChildren(lines, ...tokens, ...this.nodes, ...labels, ...numbers);
    this.frame.scrollLeft = this.frame.scrollWidth; // where the logit is
    this.sayWider();
    this.update();
    const stop = this.nodes[focused] ?? this.nodes[0];
    this.stop.reach(stop);
    if (focused >= 0) this.stop.focus(stop, this.frame);
  }

  /** @param {Shown} node @param {number} i */
  nodeOf(node, i) {
    const { data } = this;
    const { isWide } = this.layout;
    const words = {
      embed: `“${data.tokens[node.place]}”`,
      positions: "position",
      attention: node.says || `head ${node.index}`,
      mlp: node.says || "MLP",
      dictionary: node.says,
      missed: node.says,
      logit: this.answer,
      group: node.title,
    }[node.part];
    const name = make("span", "cut name", shortened(words, isWide ? LONGEST_WIDE : LONGEST));
    // Where the lines of each kind come in.
    const into = this.graph.edges.filter((edge) => edge.to === i),
      out = this.graph.edges.filter((edge) => edge.from === i).length;
    const ports = LETTERS.filter(([kind]) => into.some((edge) => edge.kind === kind)).map(([kind, letter]) =>
      make("span", "tiny port", letter, { "aria-hidden": "true", style: `left: ${100 * PORTS[kind]}%` }),
    );
    const place = `position ${node.place}, ${spoken(data.tokens[node.place])}`;
    const edges = `${plural(into.length, "edge")} from below, ${out} upwards`;
    const label = `${node.title} at ${place}: ${this.givesInWords(node)}; ${edges}`;
    const look = { "data-index": i, tabindex: "-1", "aria-label": label, style: `--part: var(--${COLOURS[node.part]})` };
    const all = node.part === "logit" ? [make("span", "cut tiny gives", brief(node.value))] : [];
    const box = make("button", `bare node ${node.part}`, [name, ...all, ...ports], look);
    box.classList.toggle(
      "main",
      this.graph.edges.some(({ main, from, to }) => main && [from, to].includes(i)),
    );
    const { x, y, width } = this.layout.nodes[i];
    Object.assign(box.style, { left: rems(x), top: rems(y), width: rems(width), height: rems(NODE.height) });
    return box;
  }

  /** @param {Shown} node */
  givesInWords({ part, value }) {
    return part === "logit" ? `${this.answer} is ${brief(value)}` : `gives ${signed(value)} of ${this.answer}`;
  }

  /** Open a node, or close it where it is open; of a group, its card. @param {number} i */
  open(i) {
    const { part, of } = this.graph.nodes[i];
    if (part === "group") return this.look(i);
    this.opened = this.opened === of[0] ? null : of[0];
    this.update();
    this.send("open", { node: of[0], of: this.data.of });
  }

  /** Bring to the front the edges of the node that is looked at, else of the open one, and of pins and groups. */
  mark() {
    const { edges, nodes, root, graph } = this;
    const opened = graph.nodes.findIndex(({ of }) => this.opened !== null && of.includes(this.opened));
    const front = new Set(this.near !== null ? [this.near] : opened >= 0 ? [opened] : []);
    graph.nodes.forEach(({ name, part }, n) => {
      const isPinned = part === "group" || this.pinned.includes(name);
      if (isPinned) front.add(n);
      nodes[n].classList.toggle("pinned", isPinned);
      nodes[n].classList.toggle("opened", n === opened);
      nodes[n].setAttribute("aria-pressed", String(n === opened));
    });
    root.classList.toggle("looking", front.size > 0);
    const near = new Set(front);
    graph.edges.forEach((edge, e) => {
      const isOwn = front.has(edge.from) || front.has(edge.to);
      edges[e].classList.toggle("own", isOwn);
      if (isOwn) near.add(edge.from).add(edge.to);
    });
    const own = edges.filter((edge) => edge.classList.contains("own"));
    own[0]?.parentElement?.append(...own.sort((a, b) => thick(b) - thick(a)));
    nodes.forEach((node, n) => {
      node.classList.toggle("near", near.has(n));
      node.classList.toggle("front", front.has(n));
    });
  }

  /** Bring a node and its edges out, and open its card; null for none. @param {number | null} i */
  look(i) {
    const { nodes } = this;
    this.near = i;
    this.mark();
    nodes.forEach((node, n) => {
      if (n === i) node.setAttribute("aria-describedby", "card");
      else node.removeAttribute("aria-describedby");
    });
    if (i === null) return this.card.close();
    this.fill(i);
    this.card.open(nodes[i], beside);
  }

  /** @param {number} i */
  fill(i) {
    const { data, card, graph } = this;
    const node = graph.nodes[i];
    const head = make("strong", "", node.title[0].toUpperCase() + node.title.slice(1));
    const where = make("div", "where", [make("span", "", `position ${node.place} `), chip(data.tokens[node.place])]);
    const members =
      node.part === "group" ? `: ${node.of.map((n) => `${data.nodes[n].title} at ${data.nodes[n].place}`).join(", ")}` : "";
    const gives = make("div", "", this.givesInWords(node) + members);
    /** The strongest edges that have this node at `own` end. @param {string} title @param {"from" | "to"} own @param {"from" | "to"} end */
    const list = (title, own, end) => {
      const edges = graph.edges.filter((edge) => edge[own] === i).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
      if (!edges.length) return [];
      const rows = edges.slice(0, MOST_LINES).map(({ value, kind, [end]: n }) => {
        const { part, title: words, place } = graph.nodes[n];
        const name = part === "logit" ? words : [`${words} at ${place} `, chip(data.tokens[place])];
        return make("tr", "", [make("td", "number", signed(value)), make("td", "", name), make("td", "", WAYS[kind])]);
      });
      const more = edges.length > MOST_LINES ? [make("div", "note", `and ${edges.length - MOST_LINES} more`)] : [];
      return [make("div", "heading", title), make("table", "", rows), ...more];
    };
    card.element.replaceChildren(head, where, gives, ...list("It reads", "to", "from"), ...list("It adds to", "from", "to"));
  }

  numbers() {
    const { nodes, edges, tokens } = this.data;
    /** @param {number} i */
    const end = (i) => [nodes[i].name.replace(/@\d+$/, ""), nodes[i].place, tokens[nodes[i].place]];
    const rows = edges.map((edge) => [...end(edge.from), ...end(edge.to), edge.kind, edge.value, edge.share]);
    const columns = ["from", "position", "token", "to", "position read at", "token read at", "kind", "logit"];
    return { columns: [...columns, "share of its kind"], rows };
  }

  /** All of the graph, for a file: see `read_file` in __init__.py. */
  file() {
    const { format, title, choices, nodes, edges, tokens, answer, against, share } = this.data;
    const named = edges.map((edge) => ({ ...edge, from: nodes[edge.from].name, to: nodes[edge.to].name }));
    const parts = nodes.map(({ name, title: words, place, value }) => {
      return { name, title: words, position: place, token: tokens[place], value };
    });
    return { format, title, choices, ...this.choices.written, answer, against, share, nodes: parts, edges: named };
  }

  picture() {
    const { data, frame, root } = this;
    this.look(null);
    root.classList.add("whole"); // all that scrolls is in the picture
    const copy = copyOf([frame, this.legend]);
    root.classList.remove("whole");
    const settings = [
      ...data.settings,
      `${plural(data.nodes.length, "node")}, ${plural(data.edges.length, "edge")}`,
      `${percent(data.share)} traced back`,
    ];
    const heading = { title: data.title, model: data.model, prompt: textOf(data.tokens, data.spaced), settings };
    return picture(root, heading, copy);
  }
}

export default view(Graph);
