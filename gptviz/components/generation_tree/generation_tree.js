// The generation tree: runs of tokens as boxes of text, left to right. Text of a model or a user is set by textContent alone.

import { inAddress, toAddress } from "../kit/address.js";
import { isDark, logarithmic } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { SPOKEN, brief, chip, count, percent, shortened, spoken } from "../kit/text.js";
import { view } from "../kit/view.js";
import { BETWEEN, EDGE, NEXT_WIDTH, branchesOf, curve, placed, shareOf } from "./layout.js";
import { pictureOf } from "./picture.js";
import { Run } from "./run.js";

const START = 0; // the node that stands for the prompt
const NEXT = "next"; // what the pass at the current place says of the token to come
// Pixels: of the narrowest and widest box on the path, of others.
const NARROWEST = 178,
  WIDEST = 560,
  ASIDE = 190;
// A box that grows is low as long as its last line begins no lower than this.
const SHORT = 30;
// The ends of a tint, in percent of the role's colour: text stays readable on either, in light and dark.
const PALEST = 6,
  STRONGEST = 62;
const REPLAY_PACE = 320;
// Where branches go on already, fewer of the tokens that may come next are shown beside them.
const FEW = 5;
const MOST_ATTENDED = 6;
const HEAD = "attended"; // in the address: "block.head"

function tinted(share) {
  return `${PALEST + (STRONGEST - PALEST) * share}%`;
}

/** How a node was chosen, in a line. */
function chosen({ how, byHand, draw }) {
  const drawn = draw === -Infinity ? "the draw had cut it" : `${percent(Math.exp(draw))} in the draw`;
  if (!how) return drawn; // it came while the tree was growing
  return byHand ? `${how}; ${drawn}` : `drawn with ${percent(Math.exp(draw))} (${how}) from:`;
}

function nats(number) {
  return `${brief(number)} nats`;
}

// The tree shown last. While scripts follow each other closely, Streamlit now and then takes a view away and puts a new one in its
// place, which goes on with what the old one had.
let lastShown = null;

/** The whole view. */
class GenerationTree {
  constructor(root) {
    this.root = root;
    this.nodes = null; // by id; of each the columns of the payload, and the ids of its children
    this.runs = new Map(); // by the id of the first node
    this.chips = new Map(); // by node
    this.tinted = []; // the chips that attention colours now
    this.places = new Map(); // of what was attended to, by the node after which
    this.looked = null; // the node (or NEXT) under the pointer or the keyboard
    this.step = null; // the place on the path that a replay stands at
    this.asked = inAddress(HEAD);
    this.build();
    this.listen();
    this.resized = new ResizeObserver(() => this.nodes && this.stage.clientWidth !== this.width && this.arrange(true));
    this.resized.observe(this.stage);
  }

  build() {
    this.stage = make("div", "stage", undefined, { role: "tree", "aria-label": "What was generated, as a tree of tokens" });
    this.canvas = make("div", "canvas", undefined, { role: "none" });
    this.links = shape("svg", { class: "links", "aria-hidden": "true" });
    this.ghosts = make("div", "ghosts", undefined, { role: "group", "aria-label": "What may come next" });
    this.prompt = []; // the chips of the prompt
    this.next = []; // what may come next, a button each
    this.canvas.append(this.links, this.ghosts);
    this.stage.append(this.canvas);

    this.card = make("div", "card", undefined, { role: "region", "aria-label": "What a token was chosen from" });
    this.head = make("div", "cardhead");
    this.how = make("div", "note how");
    this.list = make("div", "candidates");
    this.heads = make("select", "heads", undefined, { "aria-label": "Attention of" });
    this.heads.onchange = () => this.attendWith(this.heads.value);
    this.attendedLine = make("div", "attendedline");
    this.attendedLine.append(make("span", "", "Attended to:"), this.heads);
    this.attended = make("div", "attended");
    this.card.append(this.head, this.how, this.list, this.attendedLine, this.attended);

    const main = make("div", "main");
    main.append(this.stage, this.card);

    this.player = make("div", "player", undefined, { role: "group", "aria-label": "Replay the current path" });
    const button = (label, title, act) => {
      const made = make("button", "tool", label, { title, "aria-label": title });
      made.onclick = act;
      this.player.append(made);
      return made;
    };
    this.play = button("▷ Replay", "Replay the path, token by token", () => this.replay());
    this.back = button("‹", "Replay: a token back", () => this.stepTo((this.step ?? this.path.length) - 1));
    this.slider = make("input", "slider", undefined, { type: "range", min: "1", step: "1", "aria-label": "Replay: token" });
    this.slider.oninput = () => this.stepTo(Number(this.slider.value) - 1);
    this.player.append(this.slider);
    this.forth = button("›", "Replay: a token on", () => this.stepTo((this.step ?? -1) + 1));
    this.where = make("span", "where number");
    this.player.append(this.where);

    const bar = make("div", "row bar");
    const offered = { numbers: () => this.numbers(), code: () => this.code, picture: () => pictureOf(this) };
    bar.append(this.player, tools(this.root, { name: "generation-tree", ...offered }));

    this.status = make("span", "status");
    const legend = make("div", "legend note");
    const scaleOf = (role, low, high, meaning) => {
      const item = make("span", "item");
      item.append(make("span", "", low), make("span", `scale ${role}`), make("span", "", `${high} ${meaning}`));
      return item;
    };
    legend.append(
      scaleOf("p", "0", "100 %", "probability"),
      scaleOf("a", "≤ 0.1", "100 %", "attention (log scale)"),
      make("span", "", "Σ: sum of ln p"),
      this.status,
    );
    this.root.replaceChildren(main, bar, legend);
  }

  listen() {
    const { stage } = this;
    stage.addEventListener("pointerover", (event) => {
      const at = this.at(event);
      if (at !== null) this.look(at);
    });
    // On the way to the card it stays what it is, so that a token in it can be clicked.
    const left = (event) => {
      const to = event.relatedTarget;
      const stays = to && (stage.contains(to) || this.card.contains(to));
      if (event.pointerType !== "touch" && !this.byTouch && !stays) this.look(null);
    };
    for (const part of [stage, this.card]) {
      part.addEventListener("pointerleave", left);
      part.addEventListener("focusout", left);
    }
    stage.addEventListener("pointerdown", (event) => (this.byTouch = event.pointerType === "touch"));
    stage.addEventListener("focusin", (event) => {
      const at = this.at(event);
      if (at === null) return;
      this.reach(event.target);
      if (event.target.matches(":focus-visible")) this.look(at);
    });
    stage.addEventListener("click", (event) => this.clicked(event));
    stage.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const line = event.target.closest("button");
      if (line) this.takeInstead(this.shownNode, Number(line.dataset.token));
    });
    this.player.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stepTo(null);
      event.stopPropagation(); // the page's own keys must not see them
    });
    this.card.addEventListener("keydown", (event) => event.stopPropagation());
    this.attended.addEventListener("click", (event) => {
      if (event.target.closest("button")) this.tell("attend", { at: this.nodes.get(this.shownNode)?.parent ?? this.current });
    });
  }

  close() {
    clearTimeout(this.timer);
    this.resized.disconnect();
  }

  // What came

  show(payload) {
    const another = payload.number !== this.number;
    if (payload.since !== START) {
      if (another && lastShown?.number === payload.number) Object.assign(this, lastShown);
      if (this.number !== payload.number || !this.goesOn(payload)) {
        if (this.lost !== payload.number) this.send("lost", { number: (this.lost = payload.number) });
        return;
      }
    }
    this.lost = null;
    const moved = another || payload.current !== this.current,
      size = this.nodes?.size;
    this.header = payload;
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light"; // of sliders and scroll bars
    this.number = payload.number;
    if (payload.since === START) this.takeAll(payload);
    else this.takeMore(payload);
    this.current = payload.current;
    this.path = this.pathTo(this.current);
    this.onPath = new Set(this.path).add(START);
    if (moved) {
      this.step = null;
      clearTimeout(this.timer);
      this.timer = null;
      if (this.looked === NEXT || !this.nodes.has(this.looked)) this.looked = null;
    }
    this.status.textContent = payload.status;
    this.fillHeads();
    this.draw(moved || this.nodes.size !== size);
    this.render();
    if (moved && !payload.playing && !another) {
      const sum = this.path.length ? `; sum of log-probabilities ${nats(this.nodes.get(this.current).total)}` : "";
      announce(this.root, `At token ${this.path.length} of the text: ${spoken(this.label(this.current))}${sum}`);
    }
  }

  takeAll(payload) {
    this.labels = payload.labels;
    this.code = payload.code ?? "# Pause first: the tree is growing.";
    this.promptLabels = payload.prompt;
    this.nodes = new Map([[START, { id: START, parent: null, position: payload.prompt_length - 1, total: 0, children: [] }]]);
    this.addNodes(payload);
    this.places = new Map();
    const { place = [], attention: numbers } = payload.arrays;
    for (let i = 0; i < place.length; i += 4) {
      this.places.set(place[i], { start: place[i + 1], keys: place[i + 2], from: place[i + 3], numbers });
    }
    const { number, labels, code, promptLabels, nodes, places } = this;
    lastShown = { number, labels, code, promptLabels, nodes, places };
  }

  /** Whether what came goes on with what is here: after clicks in quick succession a message in between may never be sent. */
  goesOn({ current, arrays: { node, parent } }) {
    const known = new Set([...node, ...this.nodes.keys()]);
    return known.has(current) && parent.every((id) => known.has(id));
  }

  takeMore(payload) {
    Object.assign(this.labels, payload.labels);
    this.addNodes(payload);
  }

  addNodes({ arrays, how: names }) {
    const whole = "candidates" in arrays; // not while it grows
    const { node, parent, token, position, logprob, draw_logprob: draw, total } = arrays;
    const [, each] = whole ? arrays.candidates.shape : [0, 0];
    for (let i = 0; i < node.length; i++) {
      const above = this.nodes.get(parent[i]);
      if (!above || this.nodes.has(node[i])) continue;
      const made = { id: node[i], parent: parent[i], token: token[i], position: position[i], logprob: logprob[i], draw: draw[i] };
      Object.assign(made, { total: total[i], children: [], how: "", byHand: false, candidates: null });
      if (whole) {
        made.how = names[arrays.how[i]];
        made.byHand = arrays.how[i] === 0;
        made.candidates = [];
        for (let j = i * each; j < (i + 1) * each && arrays.candidates[j] >= 0; j++) {
          made.candidates.push([arrays.candidates[j], arrays.candidate_p[2 * j], arrays.candidate_p[2 * j + 1]]);
        }
      }
      this.nodes.set(node[i], made);
      above.children.push(node[i]);
    }
  }

  label(id) {
    return id === START ? (this.promptLabels.at(-1) ?? "") : this.labels[this.nodes.get(id).token];
  }

  /** The nodes from the first after the prompt to `id`. */
  pathTo(id) {
    const path = [];
    for (let node = this.nodes.get(id); node && node.id !== START; node = this.nodes.get(node.parent)) path.push(node.id);
    return path.reverse();
  }

  // Drawing

  draw(moved) {
    const tree = this.outline();
    const stale = new Map(this.runs);
    const focused = this.root.getRootNode().activeElement;
    const visit = (branch) => {
      let run = this.runs.get(branch.start);
      if (!run) this.runs.set(branch.start, (run = new Run(branch.start)));
      stale.delete(branch.start);
      branch.run = run;
      // A chip shows what it is of; another tree has other tokens under the same ids.
      if (run.number !== this.number) run.cutAt(0);
      run.number = this.number;
      branch.changed = run.hold(branch.nodes, (id) => this.pieces(id), this.header.spaced);
      branch.children.forEach(visit);
    };
    visit(tree);
    for (const [start, run] of stale) {
      run.element.remove();
      this.runs.delete(start);
    }
    for (const id of this.chips.keys()) if (!this.nodes.has(id)) this.chips.delete(id);
    this.tree = tree;
    this.fillGhosts();
    this.arrange(moved);
    if (focused && !focused.isConnected) this.chips.get(this.current)?.focus({ preventScroll: true });
    this.reach(this.chips.get(this.looked) ?? this.chips.get(this.current));
  }

  /** The tree of runs: a run ends where it forks, where it ends, and at the current place. */
  outline() {
    const branch = (start) => {
      const nodes = [start];
      let last = this.nodes.get(start);
      while (last.children.length === 1 && last.id !== this.current) {
        last = this.nodes.get(last.children[0]);
        nodes.push(last.id);
      }
      const [strong, current] = [this.onPath.has(start), last.id === this.current];
      return { start, nodes, end: last.id, strong, current, children: last.children.map(branch) };
    };
    return branch(START);
  }

  /** The chips of a node with their labels: its button; of the prompt all its tokens, the last of which is the button. */
  pieces(id) {
    if (id !== START) return [[this.chip(id), this.label(id)]];
    const last = this.promptLabels.length - 1;
    this.prompt = this.promptLabels.map((label, i) => {
      const one = i === last ? this.chip(START) : chip(label);
      one.classList.add("prompt");
      one.dataset.node = START;
      return one;
    });
    return this.prompt.map((one, i) => [one, this.promptLabels[i]]);
  }

  chip(id) {
    const node = this.nodes.get(id),
      label = this.label(id),
      p = Math.exp(node.logprob);
    const button = make("button", "chip", label, { role: "treeitem", tabindex: "-1", "aria-level": String(this.depth(node)) });
    button.dataset.node = id;
    button.classList.toggle("blank", label in SPOKEN);
    button.setAttribute("aria-label", id === START ? "the prompt" : `${spoken(label)}, ${percent(p)}`);
    if (id !== START) button.style.setProperty("--p", tinted(p));
    this.chips.set(id, button);
    return button;
  }

  depth(node) {
    return node.position - this.header.prompt_length + 2;
  }

  fillGhosts() {
    const { ghost, ghost_p: p } = this.header.arrays;
    const closed = this.header.playing || this.header.full;
    const before = this.ghosts.contains(this.root.getRootNode().activeElement);
    const taken = new Set(this.nodes.get(this.current).children.map((id) => this.nodes.get(id).token));
    const lines = [];
    for (let i = 0; i < ghost.length; i++) {
      if (taken.has(ghost[i]) || (taken.size && lines.length === FEW)) continue;
      const label = this.header.labels[ghost[i]],
        cut = this.header.cut[i];
      const line = make("button", "ghost", undefined, { role: "treeitem", tabindex: "-1", "aria-level": this.path.length + 2 });
      line.dataset.token = ghost[i];
      line.classList.toggle("cut", Boolean(cut));
      line.classList.toggle("closed", closed);
      if (closed) line.setAttribute("aria-disabled", "true");
      const drawn = cut ? `cut by ${cut}: never drawn` : `drawn with ${percent(p[2 * i + 1])}`;
      line.title = `${drawn}${closed ? "" : "; click to go on with it"}`;
      line.setAttribute("aria-label", `next: ${spoken(label)}, ${percent(p[2 * i])}, ${drawn}`);
      const name = chip(shortened(label, 7));
      name.classList.add("name");
      name.style.setProperty("--p", tinted(p[2 * i]));
      line.append(name, make("span", "number", percent(p[2 * i])));
      lines.push(line);
    }
    this.next = lines;
    this.ghosts.replaceChildren(make("div", "note", "may come next"), ...lines);
    this.ghosts.hidden = !lines.length;
    if (before) this.chips.get(this.current)?.focus({ preventScroll: true });
  }

  /** Give every box its size and place. */
  arrange(moved) {
    this.width = this.stage.clientWidth;
    this.fillBoxes(this.tree);
    this.giveWidths();
    const next = this.ghosts.hidden ? null : this.ghosts.offsetHeight;
    const { right, bottom, fan, links } = placed(this.tree, this.stage.clientHeight, next);
    this.fan = fan;
    for (const { run, x, y } of branchesOf(this.tree)) run.element.style.transform = `translate(${x}px, ${y}px)`;
    if (fan) this.ghosts.style.transform = `translate(${fan.x}px, ${fan.y}px)`;
    for (const line of fan ? this.next : []) {
      const look = line.classList.contains("cut") ? "link next cut" : "link next";
      links.push([fan.from, fan.x, fan.y + line.offsetTop + line.offsetHeight / 2, look]);
    }
    this.lines = links.map(([from, x, y, look]) => [curve(from.x + from.w, from.y + from.h / 2, x, y), look]);
    this.extent = [right, bottom];
    const [w, h] = this.extent;
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${h}px`;
    this.links.setAttribute("width", w);
    this.links.setAttribute("height", h);
    this.links.replaceChildren(...this.lines.map(([d, look]) => shape("path", { d, class: look })));
    this.mark();
    this.scroll(moved);
  }

  fillBoxes(tree) {
    for (const branch of branchesOf(tree)) {
      const { element, foot } = branch.run;
      branch.grows = branch.current && !branch.children.length;
      element.classList.toggle("strong", branch.strong);
      element.classList.toggle("grows", branch.grows);
      element.classList.toggle("only", branch.grows && branch === tree);
      const ended = (branch.current || !branch.children.length) && branch.end !== START;
      foot.hidden = !ended;
      if (ended) this.fillFoot(foot, this.nodes.get(branch.end));
      if (!element.isConnected) this.canvas.append(element);
    }
  }

  /** The boxes of the current path share the stage; the one that grows takes its width before it has the text for it. */
  giveWidths() {
    const all = [...branchesOf(this.tree)],
      path = all.filter((branch) => branch.strong);
    // Once for each text: to be measured it is laid out anew, which scrolls it.
    const fresh = path.filter((branch) => !branch.grows && branch.run.wanted === null);
    for (const { run } of fresh) Object.assign(run.element.style, { width: "", maxWidth: `${WIDEST}px` });
    for (const { run } of fresh) run.wanted = run.element.offsetWidth;
    const wanted = path.map(({ run, grows }) => (grows ? WIDEST : run.wanted));
    const beside = path.at(-1).children.length ? ASIDE : NEXT_WIDTH;
    const widest = Math.max(NARROWEST, shareOf(wanted, this.width - 2 * EDGE - beside - BETWEEN * path.length));
    for (const { run, strong, grows } of all) {
      run.element.style.width = grows ? `${Math.min(widest, WIDEST)}px` : "";
      run.element.style.maxWidth = `${Math.min(widest, strong ? WIDEST : ASIDE)}px`;
    }
    for (const { run, grows } of path)
      run.element.classList.toggle("short", grows && run.text.lastElementChild.offsetTop < SHORT);
  }

  fillFoot(foot, node) {
    const length = this.depth(node) - 1;
    const mean = make("span", "mean", `${brief(node.total / length)} per token`);
    foot.replaceChildren(make("span", "sum", `Σ ${nats(node.total)}`), mean);
    foot.title = `Sum of the log-probabilities of this branch’s ${count(length)} tokens after the prompt, and their mean`;
    foot.dataset.total = node.total;
  }

  mark() {
    for (const [id, chip] of this.chips) {
      const here = id === this.current;
      chip.classList.toggle("current", here);
      if (here) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    }
  }

  /** Bring the current place into view: within its box, and its box within the stage. */
  scroll(moved) {
    const visit = (branch) => {
      const { text } = branch.run;
      if (branch.strong && (moved || branch.changed)) text.scrollTop = text.scrollHeight;
      branch.children.forEach(visit);
    };
    if (this.looked === null || moved) visit(this.tree);
    if (!moved) return;
    let at = this.tree;
    while (!at.current) at = at.children.find((child) => child.strong);
    const right = this.ghosts.hidden ? at.x + at.w : this.fan.x + NEXT_WIDTH;
    this.stage.scrollLeft = Math.max(0, right + EDGE - this.stage.clientWidth);
    // The middle of all that goes on from here; what may come next is seen in any case.
    const middle = at.y + at.h / 2 - this.stage.clientHeight / 2;
    const bottom = this.ghosts.hidden ? 0 : this.fan.y + this.ghosts.offsetHeight + EDGE - this.stage.clientHeight;
    this.stage.scrollTop = Math.max(0, middle, bottom);
  }

  // Looking

  at(event) {
    const found = event.target.closest("[data-node], .ghost");
    if (!found) return null;
    return found.classList.contains("ghost") ? NEXT : Number(found.dataset.node);
  }

  look(at) {
    if (at === this.looked) return;
    this.looked = at;
    this.render();
  }

  /** Show what is looked at: the token under the pointer, that of the replay, or the last one. */
  render() {
    const replayed = this.step === null ? null : this.path[this.step];
    const looked = this.looked ?? replayed;
    this.root.classList.toggle("attending", looked !== null);
    this.root.classList.toggle("replaying", this.step !== null);
    for (const chip of this.focusedChips ?? []) chip.classList.remove("focus");
    this.focusedChips = looked === null || looked === NEXT ? [] : [this.chips.get(looked)].filter(Boolean);
    for (const chip of this.focusedChips) chip.classList.add("focus");
    this.fade();
    this.fillCard(looked ?? this.current);
    this.tintAttention(looked);
    const steps = this.path.length;
    this.slider.max = String(Math.max(1, steps));
    this.slider.value = String(this.step === null ? steps : this.step + 1);
    this.where.textContent =
      this.step === null
        ? `${count(steps)} ${steps === 1 ? "step" : "steps"}`
        : `step ${count(this.step + 1)} of ${count(steps)}`;
    this.play.textContent = this.timer ? "□ Stop" : "▷ Replay";
    for (const control of [this.play, this.back, this.slider, this.forth]) control.disabled = !steps || this.header.playing;
    this.player.dataset.step = this.step === null ? "" : String(this.step);
  }

  /** In a replay, what has not come yet is pale. */
  fade() {
    for (const chip of this.later ?? []) chip.classList.remove("later");
    this.later = this.step === null ? [] : this.path.slice(this.step + 1).map((id) => this.chips.get(id));
    for (const chip of this.later) chip.classList.add("later");
  }

  fillCard(at) {
    const fresh = at === NEXT || at === START;
    this.shownNode = at;
    const node = fresh ? null : this.nodes.get(at);
    const wait = this.header.playing && this.looked === null;
    this.card.dataset.node = wait ? "" : at;
    if (wait) {
      this.head.replaceChildren(make("span", "name", "The text grows"));
      this.how.textContent = "Pause, or click a token, to see what each was chosen from.";
      this.list.replaceChildren();
    } else if (fresh) {
      this.head.replaceChildren(make("span", "name", at === NEXT ? "The next token" : "The prompt"));
      const next = "Drawn by Step and Play; or click one to go on with it.";
      this.how.textContent = at === NEXT ? next : "What follows was written by the model.";
      this.list.replaceChildren(...(at === NEXT ? this.nextLines() : []));
    } else {
      const name = chip(this.label(at));
      name.classList.add("big");
      const nth = make("span", "nth", `token ${count(this.depth(node) - 1)}`);
      this.head.replaceChildren(name, make("span", "number p", percent(Math.exp(node.logprob))), nth);
      this.how.textContent = chosen(node);
      this.list.replaceChildren(...this.candidateLines(node));
    }
    this.attendedLine.hidden = wait || at === START;
    this.fillAttended(wait ? START : at);
  }

  candidateLines(node) {
    if (!node.candidates) return [make("div", "note", "Pause to see what else was likely.")];
    const lines = node.candidates.map(([token, p, drawn], i) => this.line(token, p, drawn === 0, token === node.token, i));
    if (!node.candidates.some(([token]) => token === node.token)) {
      lines.push(this.line(node.token, Math.exp(node.logprob), node.draw === -Infinity, true, -1));
    }
    return lines;
  }

  nextLines() {
    const { ghost, ghost_p: p } = this.header.arrays;
    return [...ghost].map((token, i) => this.line(token, p[2 * i], Boolean(this.header.cut[i]), false, i, this.header.labels));
  }

  line(token, p, cut, taken, i, labels = this.labels) {
    const label = labels[token];
    const line = make("button", "line", undefined, { tabindex: "-1" });
    line.dataset.token = token;
    line.dataset.p = p;
    line.classList.toggle("taken", taken);
    line.classList.toggle("cut", cut);
    line.title = taken ? "The token that was chosen" : `Go on with this one instead${i >= 0 ? ` (key ${i + 1})` : ""}`;
    const said = `${spoken(label)}, ${percent(p)}${cut ? ", cut" : ""}`;
    line.setAttribute("aria-label", said + (taken ? ", chosen" : ": take it instead"));
    const name = chip(shortened(label, 9));
    name.classList.add("name");
    name.style.setProperty("--p", tinted(p));
    const track = make("span", "track"),
      fill = make("span", "fill");
    fill.style.width = `${100 * p}%`;
    track.append(fill);
    line.append(name, track, make("span", "number", percent(p)));
    return line;
  }

  // Attention

  fillHeads() {
    const [layers, heads] = this.header.heads;
    const shape = `${layers} ${heads}`;
    if (this.shapeOfHeads === shape) return;
    this.shapeOfHeads = shape;
    const option = (value, text) => make("option", "", text, { value });
    const groups = Array.from({ length: layers }, (_, block) => {
      const group = make("optgroup", "", undefined, { label: `Block ${block}` });
      for (let head = 0; head < heads; head++) group.append(option(`${block}.${head}`, `block ${block}, head ${head}`));
      return group;
    });
    this.heads.replaceChildren(option("", layers ? "mean of all heads" : "no heads in this model"), ...groups);
    const known = new Set([...this.heads.options].map((one) => one.value));
    this.chosenHead = known.has(this.asked) ? this.asked : "";
    this.heads.value = this.chosenHead;
    this.heads.disabled = !layers;
  }

  attendWith(value) {
    this.chosenHead = this.asked = value;
    toAddress({ [HEAD]: value || null });
    this.render();
  }

  /** What the step that chose `at` attended to: {start, weights} by place in the text; null where that is not here. */
  attentionOf(at) {
    const place = this.places.get(at === NEXT ? this.current : this.nodes.get(at)?.parent);
    if (!place) return null;
    const [layers, heads] = this.header.heads;
    const { start, keys, from, numbers } = place;
    const weights = new Float64Array(keys);
    const [block, head] = this.chosenHead.split(".").map(Number);
    const rows = this.chosenHead ? [block * heads + head] : [...Array(layers * heads).keys()];
    for (const row of rows) for (let key = 0; key < keys; key++) weights[key] += numbers[from + row * keys + key] / rows.length;
    return { start, weights };
  }

  /** The chips of the text that ends before `at`, by their places. */
  chipAt(at) {
    const last = at === NEXT ? this.current : this.nodes.get(at).parent;
    const path = this.pathTo(last),
      length = this.header.prompt_length;
    return (place) => (place < length ? this.prompt[place - length + this.prompt.length] : this.chips.get(path[place - length]));
  }

  tintAttention(looked) {
    for (const chip of this.tinted) {
      chip.classList.remove("key");
      chip.style.removeProperty("--a");
    }
    this.tinted = [];
    if (looked === null || looked === START) return;
    const found = this.attentionOf(looked);
    if (!found) return;
    const chipAt = this.chipAt(looked);
    found.weights.forEach((weight, i) => {
      const chip = chipAt(found.start + i);
      if (!chip || weight < 0.001) return;
      chip.classList.add("key");
      chip.style.setProperty("--a", tinted(logarithmic(weight)));
      this.tinted.push(chip);
    });
  }

  fillAttended(at) {
    if (at === START) return this.attended.replaceChildren();
    const found = this.attentionOf(at);
    if (!found) {
      const [layers] = this.header.heads;
      if (!layers) return this.attended.replaceChildren(make("span", "note", "This model has no attention."));
      if (this.header.playing) return this.attended.replaceChildren(make("span", "note", "Pause to see it."));
      const again = make("button", "tool", "Compute it again", { title: "This step’s attention is no longer kept" });
      return this.attended.replaceChildren(again);
    }
    const chipAt = this.chipAt(at);
    const order = [...found.weights.keys()].sort((a, b) => found.weights[b] - found.weights[a] || b - a).slice(0, MOST_ATTENDED);
    const items = order.map((i) => {
      const item = make("span", "item");
      const place = found.start + i;
      const name = chip(shortened(chipAt(place)?.textContent ?? "…", 9));
      name.classList.add("key");
      name.style.setProperty("--a", tinted(logarithmic(found.weights[i])));
      item.dataset.place = place;
      item.dataset.weight = found.weights[i];
      item.title = `place ${place} of the text`;
      item.append(name, make("span", "number", percent(found.weights[i])));
      return item;
    });
    return this.attended.replaceChildren(...items);
  }

  // Replay

  stepTo(step) {
    clearTimeout(this.timer);
    this.timer = null;
    this.step = step === null || !this.path.length ? null : Math.max(0, Math.min(step, this.path.length - 1));
    this.looked = null;
    this.render();
    if (this.step !== null) this.reveal(this.chips.get(this.path[this.step]));
  }

  replay() {
    if (this.timer) return this.stepTo(this.step);
    const from = this.step === null || this.step === this.path.length - 1 ? 0 : this.step + 1;
    const next = (step) => {
      if (step >= this.path.length) return this.stepTo(null);
      this.stepTo(step);
      this.timer = setTimeout(() => next(step + 1), REPLAY_PACE);
      this.play.textContent = "□ Stop";
    };
    next(from);
  }

  // Acting

  tell(event, fields) {
    this.send(event, { number: this.number, ...fields });
  }

  clicked(event) {
    const at = this.at(event);
    if (at === null) return;
    const element = event.target.closest("[data-node], .ghost");
    // On a touch screen the first tap looks, the second acts.
    if (this.byTouch && this.tapped !== element) {
      this.tapped = element;
      this.look(at);
      return;
    }
    this.tapped = null;
    if (at !== NEXT) this.goTo(at);
    else if (!element.classList.contains("closed")) this.tell("take", { at: this.current, token: Number(element.dataset.token) });
  }

  goTo(id) {
    if (id !== this.current || this.header.playing) this.tell("go", { at: id });
  }

  /** Another token in the place of node `at`. */
  takeInstead(at, token) {
    if (at === NEXT) {
      if (!this.header.playing && !this.header.full) this.tell("take", { at: this.current, token });
      return;
    }
    const node = this.nodes.get(at);
    if (node && node.id !== START && token !== node.token) this.tell("take", { at: node.parent, token });
  }

  /** Make an element the one that the Tab key reaches. */
  reach(element) {
    if (this.reached && this.reached !== element) this.reached.tabIndex = -1;
    this.reached = element;
    if (element) element.tabIndex = 0;
  }

  focus(element) {
    if (!element) return;
    this.reach(element);
    element.focus({ preventScroll: true });
    this.look(this.at({ target: element }));
    this.reveal(element);
  }

  /** Scroll a box and the stage, but not the page, until an element is seen. */
  reveal(element) {
    for (const box of [element?.closest(".text"), this.stage]) {
      if (!box) continue;
      const outer = box.getBoundingClientRect(),
        inner = element.getBoundingClientRect();
      if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + 4;
      else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 4;
      if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left + 4;
      else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right + 4;
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.at(event);
    if (at === null) return;
    if (event.key === "Enter" || event.key === " ") {
      this.byTouch = false;
      event.stopPropagation(); // the browser makes a click of them
      return;
    }
    const line = /^[1-9]$/.test(event.key) ? this.list.children[Number(event.key) - 1] : null;
    if (line?.dataset.token) this.takeInstead(at, Number(line.dataset.token));
    else if (event.key === "Escape") this.stepTo(null);
    else if (!this.walk(event.key, at, event.target.closest(".ghost"))) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Walk the tree: left to the parent, right to the child, up and down to what stands in the same place of other branches. */
  walk(key, at, ghost) {
    const chip = (id) => this.chips.get(id);
    const steps = {
      ArrowLeft: () => (ghost ? chip(this.current) : chip(this.nodes.get(at).parent)),
      ArrowRight: () => (ghost ? null : this.childOf(at)),
      ArrowUp: () => (ghost ? (this.next[this.next.indexOf(ghost) - 1] ?? this.neighbour(NEXT, -1)) : this.neighbour(at, -1)),
      ArrowDown: () => (ghost ? this.next[this.next.indexOf(ghost) + 1] : this.neighbour(at, 1)),
      Home: () => chip(START),
      End: () => chip(this.current),
    };
    if (!(key in steps)) return false;
    this.focus(steps[key]());
    return true;
  }

  childOf(id) {
    const { children } = this.nodes.get(id);
    const next = children.find((child) => this.onPath.has(child));
    if (next === undefined && id === this.current && this.next.length) return this.next[0];
    return this.chips.get(next ?? children[0]);
  }

  /** The token in the same place of the text, in the branch drawn above (−1) or below (1). */
  neighbour(at, way) {
    const position = at === NEXT ? this.nodes.get(this.current).position + 1 : this.nodes.get(at).position;
    const level = [];
    const visit = (branch) => {
      const first = this.nodes.get(branch.start).position;
      if (position >= first && position < first + branch.nodes.length) level.push(branch.nodes[position - first]);
      else branch.children.forEach(visit);
      if (branch.current && position === first + branch.nodes.length && !this.ghosts.hidden) level.push(NEXT);
    };
    visit(this.tree);
    const found = level[level.indexOf(at) + way];
    return found === NEXT ? this.next[0] : found === undefined ? null : this.chips.get(found);
  }

  // Behind the view

  numbers() {
    const columns = ["node", "parent", "position", "token id", "token", "log-probability (nats)", "sum of the branch (nats)"];
    columns.push("log-probability in the draw (nats)", "on the current path", "how chosen");
    const rows = [...this.nodes.values()]
      .filter((node) => node.id !== START)
      .map((node) => [
        ...[node.id, node.parent, node.position, node.token, this.label(node.id), node.logprob, node.total, node.draw],
        ...[this.onPath.has(node.id) ? "yes" : "no", node.how],
      ]);
    return { columns, rows };
  }
}

export default view(GenerationTree);
