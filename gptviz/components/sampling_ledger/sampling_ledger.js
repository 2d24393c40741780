// The sampling ledger: the next token as a pipeline over the whole vocabulary. The server sends the logits once; every stage is
// computed here, as gptviz/learn/sampling.py computes it, so that no slider waits.

const ROW = 20; // pixels, as in the style sheet
const SEEDS = 100;
const DRAWS = 10_000;
const LIKELIEST = "All, by probability", VOCABULARY = "All, by vocabulary";
// A sum that lacks no more than rounding has reached its limit: as in the library.
const ROUNDING = 1e-12;
// Of a χ² test: rarer tokens are counted together until so many are expected.
const LEAST_EXPECTED = 5;
// Narrower intervals are drawn together.
const NARROWEST = 0.0008;
// Characters of a token in a line and on its interval, and the pixels that one of them takes.
const LONGEST_NAME = 14, LONGEST_ON_INTERVAL = 8, CHARACTER = 8;
const PICTURE_ROWS = 16, PICTURE_TOP = 68, PICTURE_MARGIN = 10; // the last two in pixels

/** A number as a person or a link writes it, NaN for anything else. */
function numeral(text) {
  return /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : NaN;
}

// What is chosen: how it is read from the address and whether it is possible, what it is where the address says nothing, and of a
// slider its name, its ends and step, and what stands for its value.
const CHOICES = {
  temperature: {
    usual: 1,
    read: numeral,
    possible: (value) => value >= 0 && value <= 2,
    slider: { name: "Temperature", ends: [0, 2, 0.01], says: (value) => value.toFixed(2) },
  },
  top_k: {
    usual: 0,
    read: numeral,
    possible: (value, size) => Number.isInteger(value) && value <= Math.max(size, 100),
    slider: { name: "Top-k", ends: [0, 1, 1], says: (value) => (value ? count(value) : "off") },
  },
  top_p: {
    usual: 1,
    read: numeral,
    possible: (value) => value >= 0.05 && value <= 1,
    slider: { name: "Top-p", ends: [0.05, 1, 0.001], says: (value) => (value === 1 ? "off" : String(value)) },
  },
  seed: {
    usual: 0,
    read: numeral,
    possible: (value) => Number.isInteger(value) && value < SEEDS,
    slider: { name: "Seed", ends: [0, SEEDS - 1, 1], says: String },
  },
  tokens: { usual: LIKELIEST, read: String, possible: (value) => value === LIKELIEST || value === VOCABULARY },
  log: { usual: false, read: (text) => ({ true: true, false: false })[text], possible: (value) => typeof value === "boolean" },
};
const SAMPLING = ["temperature", "top_k", "top_p", "seed"];

// The lanes: title, what it means, and the choice whose slider steers it.
const LANES = {
  token: ["token", "Every token of the vocabulary is one line. A click takes it: it joins the text."],
  logit: ["logit", "What the model computes: a score z for every token, the larger the more it expects it."],
  before: ["model says", "Softmax: e to the z, divided by the sum of that over all tokens. What the model itself expects."],
  hot: ["÷ temperature", "z ÷ temperature, then softmax. Below 1 the likely become likelier; 0 leaves one.", "temperature"],
  "top-k": ["top-k", "Only the k likeliest tokens stay; what they have is scaled up to sum to 1.", "top_k"],
  "top-p": ["top-p", "The sum runs from the likeliest token down; once it has reached p, all that follow are cut.", "top_p"],
  after: ["drawn from", "What was kept, divided by its sum, so that it is 100 % again: the chances of the draw."],
};

/** Every stage from logits to what is drawn from, over the whole vocabulary, in double precision. */
class Stages {
  constructor(logits) {
    this.logits = logits;
    this.size = logits.length;
    // The likeliest first; of equally likely tokens the smaller id first. Two that are both impossible differ by NaN.
    this.order = new Uint32Array(this.size).map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
    this.rank = new Uint32Array(this.size);
    this.order.forEach((token, rank) => {
      this.rank[token] = rank;
    });
    for (const stage of ["before", "scaled", "hot", "reached", "after", "ends"]) this[stage] = new Float64Array(this.size);
    this.scale(1);
    this.softmax(this.before);
  }

  /** `scaled`: logits ÷ temperature, the largest moved to 0, which keeps a tiny temperature finite. */
  scale(temperature) {
    const { logits, scaled, size, order } = this;
    const largest = logits[order[0]];
    if (temperature === 0) scaled.fill(-Infinity)[order[0]] = 0;
    else for (let i = 0; i < size; i++) scaled[i] = (logits[i] - largest) / temperature;
  }

  /** The softmax of `scaled` over the `kept` likeliest tokens. */
  softmax(into, kept = this.size) {
    const { scaled, rank, size } = this;
    let sum = 0;
    for (let i = 0; i < size; i++) sum += into[i] = rank[i] < kept ? Math.exp(scaled[i]) : 0;
    for (let i = 0; i < size; i++) into[i] /= sum;
  }

  /** Compute every stage anew. Top-k and top-p keep the likeliest: two counts, `inTopK` and `kept`, say which. */
  set({ temperature, top_k, top_p }) {
    const { order, hot, reached } = this;
    this.temperature = temperature;
    this.scale(temperature);
    this.softmax(hot);
    this.inTopK = top_k ? Math.min(top_k, this.size) : this.size;
    this.sumOfTopK = 0;
    for (let rank = 0; rank < this.inTopK; rank++) this.sumOfTopK += hot[order[rank]];
    this.kept = 1;
    this.sumKept = 0;
    for (let rank = 0, sum = 0; rank < this.inTopK; rank++) {
      if (top_p === 1 || sum < top_p - ROUNDING || rank === 0) {
        this.kept = rank + 1;
        this.sumKept += hot[order[rank]];
      }
      sum += hot[order[rank]] / this.sumOfTopK;
      reached[rank] = sum;
    }
    this.softmax(this.after, this.kept);
    this.divide();
  }

  /** `ends`: where each token's interval of [0, 1) ends, the tokens lying in the vocabulary's order. */
  divide() {
    const { after, ends, size } = this;
    let end = 0;
    for (let i = 0; i < size; i++) ends[i] = end += after[i];
    for (let i = 0; i < size; i++) ends[i] /= end;
  }

  start(token) {
    return token ? this.ends[token - 1] : 0;
  }

  /** The token into whose interval a number in [0, 1) falls. */
  draw(number) {
    let low = 0, high = this.size - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > number) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** What took a token out of the draw, "" if nothing did. */
  cut(token) {
    if (this.rank[token] >= this.inTopK) return "top-k";
    if (this.rank[token] >= this.kept) return "top-p";
    return this.temperature === 0 && this.rank[token] > 0 ? "temperature 0" : "";
  }

  get left() {
    return this.temperature === 0 ? 1 : this.kept;
  }
}

/** −Σ p ln p, in nats. */
function entropy(probabilities) {
  let sum = 0;
  for (const p of probabilities) if (p > 0) sum -= p * Math.log(p);
  return Math.max(0, sum);
}

/** Numbers in [0, 1) of 53 random bits each, from the browser's source of randomness. */
function randomNumbers(count) {
  const most = 8192; // of 8 bytes: the browser gives 65,536 bytes at a time
  const numbers = new Float64Array(count);
  for (let begun = 0; begun < count; begun += most) {
    const bits = crypto.getRandomValues(new Uint32Array(2 * Math.min(most, count - begun)));
    for (let i = 0; i < bits.length; i += 2) numbers[begun + i / 2] = ((bits[i] >>> 5) * 2 ** 26 + (bits[i + 1] >>> 6)) / 2 ** 53;
  }
  return numbers;
}

/** χ² of counts against probabilities, and its degrees of freedom; tokens too rare for the test are counted together. */
function chiSquared(counts, stages) {
  const bins = [];
  let observed = 0, expected = 0;
  for (let rank = stages.kept - 1; rank >= 0; rank--) {
    observed += counts[stages.order[rank]];
    expected += DRAWS * stages.after[stages.order[rank]];
    if (expected < LEAST_EXPECTED) continue;
    bins.push([observed, expected]);
    observed = expected = 0;
  }
  const last = bins.at(-1);
  last[0] += observed;
  last[1] += expected;
  const statistic = bins.reduce((sum, [o, e]) => sum + (o - e) ** 2 / e, 0);
  return { statistic, freedom: bins.length - 1 };
}

/** The numbers that top-k's slider offers: all of the small ones, then in steps of a tenth, and 0, which keeps all. */
function notches(size) {
  const offered = [];
  for (let k = 1; k < size; k = k < 100 ? k + 1 : Math.ceil(1.1 * k)) offered.push(k);
  if (size > 1 && offered.at(-1) !== size - 1) offered.push(size - 1);
  return [...offered, 0];
}

class Ledger {
  constructor(root) {
    this.root = root;
    this.chosen = Object.fromEntries(Object.entries(CHOICES).map(([key, { usual }]) => [key, usual]));
    this.rows = [];
    this.current = 0; // the place in the list that the keyboard is at
    this.hovered = null; // the token under the pointer
    this.touched = null; // the token that a second tap takes
    this.build();
    this.listen();
  }

  // The parts of the view

  build() {
    const { root } = this;
    this.facts = make("p", "facts");
    this.asked = make("p", "note asked", "", { role: "status" });
    this.asked.hidden = true;
    this.sliders = {};
    this.titles = make("div", "lanes titles");
    this.sums = make("div", "lanes sums");
    for (const [lane, [title, help, key]] of Object.entries(LANES)) {
      const cell = make("div", `title ${lane}`, undefined, { title: help });
      const name = make("span", "", title);
      cell.append(name);
      if (key) {
        const [range, value] = this.slider(key);
        name.append(" ", value);
        cell.append(range);
      }
      this.titles.append(cell);
      this.sums.append(make("span", `sum ${lane}`, "", { "data-title": title.replace("temperature", "T") }));
    }
    this.list = make("div", "list", undefined, { role: "listbox", tabindex: "0" });
    this.space = make("div", "space", undefined, { role: "presentation" });
    this.list.append(this.space);
    this.reading = make("p", "reading");
    this.below = make("div", "row below");
    root.replaceChildren(this.facts, this.asked, this.titles, this.sums, this.list, this.reading, this.buildDraw(), this.below);
    this.buildBelow();
  }

  slider(key) {
    const { name, ends: [min, max, step] } = CHOICES[key].slider;
    const range = make("input", "range", undefined, { type: "range", min, max, step, "aria-label": name });
    const value = make("output", "value");
    range.dataset.key = key;
    this.sliders[key] = { range, value };
    return [range, value];
  }

  buildDraw() {
    this.draw = make("section", "draw", undefined, { "aria-label": "The draw" });
    const head = make("div", "drawing");
    const seed = make("label", "seed", "seed ");
    seed.append(...this.slider("seed"));
    const button = (text, help, act) => {
      const made = make("button", "tool", text, { title: help });
      made.onclick = act;
      return made;
    };
    const next = button("Next seed", "Another random number", () => this.choose({ seed: (this.chosen.seed + 1) % SEEDS }, true));
    const often = "Fresh random numbers through the same draw: how often does each token come?";
    const many = button(`Draw ${count(DRAWS)}`, often, () => this.drawMany());
    this.outcome = make("p", "outcome");
    this.taking = button("Take it", "Put the token that was drawn behind the text", () => this.take(this.drawn));
    head.append(make("strong", "", "The draw"), seed, next, many, this.outcome, this.taking);
    this.interval = make("div", "interval");
    const picture = shape("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.parts = ["even", "odd", "many", "drawn"].map((kind) => shape("path", { class: kind }));
    picture.append(...this.parts);
    this.names = make("div", "names", undefined, { "aria-hidden": "true" });
    this.fallen = make("div", "fallen", undefined, { "aria-hidden": "true" });
    this.interval.append(picture, this.names, this.fallen);
    const ends = make("div", "ends");
    this.verdict = make("span", "verdict");
    ends.append(make("span", "", "0"), this.verdict, make("span", "", "1"));
    this.draw.append(head, this.interval, ends);
    return this.draw;
  }

  buildBelow() {
    const choice = make("div", "tools");
    this.orders = make("select", "tool", undefined, { "aria-label": "Order of the tokens" });
    for (const [value, name] of [[LIKELIEST, "likeliest first"], [VOCABULARY, "by vocabulary"]]) {
      this.orders.append(make("option", "", name, { value }));
    }
    this.orders.onchange = () => this.choose({ tokens: this.orders.value });
    const search = { type: "search", placeholder: "find a token", "aria-label": "Find a token" };
    this.finding = make("input", "tool find", undefined, search);
    this.finding.oninput = () => this.rearrange();
    this.logs = make("button", "tool", "log bars", { title: "Equal ratios as equal lengths, down to 0.1 %" });
    this.logs.onclick = () => this.choose({ log: !this.chosen.log });
    this.scale = make("span", "scale");
    choice.append(this.orders, this.finding, this.logs, this.scale);
    const behind = tools(this.root, {
      name: "next_token",
      numbers: () => this.numbers(),
      code: () => this.code(),
      picture: () => this.picture(),
    });
    this.below.append(choice, behind);
  }

  listen() {
    const { root, list } = this;
    root.addEventListener("input", (event) => {
      const { key } = event.target.dataset;
      if (key) this.choose({ [key]: this.fromSlider(key, Number(event.target.value)) }, key === "seed");
    });
    // The page has keys of its own, and what is typed here is not meant for them.
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches("input, select, button")) event.stopPropagation();
      if (event.key === "Escape" && event.target === this.finding) {
        this.finding.value = "";
        this.rearrange();
      }
    });
    list.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("scroll", () => this.ask(), { passive: true });
    list.addEventListener("focus", () => this.ask());
    list.addEventListener("blur", () => this.ask());
    list.addEventListener("pointermove", (event) => this.hover(this.tokenAt(event)));
    list.addEventListener("pointerleave", () => this.hover(null));
    list.addEventListener("click", (event) => this.clicked(event));
    for (const kind of ["pointermove", "pointerdown"]) {
      this.interval.addEventListener(kind, (event) => this.hover(this.tokenUnder(event)));
    }
    this.interval.addEventListener("pointerleave", () => this.hover(null));
    this.observer = new ResizeObserver(() => {
      this.dirty = true; // names fit or do not
      this.ask();
    });
    this.observer.observe(list);
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    this.frame = null;
  }

  // What is shown

  show(header) {
    const another = header.generation !== this.header?.generation;
    const first = !this.header;
    this.header = header;
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light";
    if (another) {
      this.stages = new Stages(header.arrays.logits);
      this.seeds = header.arrays.numbers;
      this.observed = null;
      this.hovered = this.touched = null;
      this.prepare();
    }
    if (first) this.readAddress();
    if (header.number && header.number !== Ledger.obeyed) {
      Ledger.obeyed = header.number;
      this.choose(header.asked, true);
    }
    this.dirty = true;
    if (another) this.rearrange(this.chosen.tokens === VOCABULARY); // there every token keeps its place
    this.ask();
  }

  /** What depends on the vocabulary and on what the view is for. */
  prepare() {
    const { header, stages, list } = this;
    this.root.classList.toggle("plain", !this.seeds);
    list.classList.toggle("takes", header.takes);
    list.setAttribute("aria-label", `${header.title}. ${count(stages.size)} tokens`);
    this.notches = notches(stages.size);
    this.sliders.top_k.range.max = this.notches.length - 1;
    this.taking.hidden = !header.takes;
    this.lowest = stages.logits[stages.order.findLast((token) => Number.isFinite(stages.logits[token]))];
  }

  readAddress() {
    const vain = [];
    for (const [key, { usual, read, possible }] of Object.entries(CHOICES)) {
      const text = inAddress(key);
      if (text === null || (!this.seeds && SAMPLING.includes(key))) continue;
      const value = read(text);
      const instead = usual === false ? "off" : usual;
      if (possible(value, this.stages.size)) this.chosen[key] = value;
      else vain.push(`${key} = “${shortened(text, 80)}”, which is not to be had here; showing ${instead}.`);
    }
    this.asked.textContent = vain.length ? `The link asks for ${vain.join(" It asks for ")}` : "";
    this.asked.hidden = !vain.length;
  }

  remember() {
    const values = {};
    for (const [key, { usual }] of Object.entries(CHOICES)) {
      if (this.seeds || !SAMPLING.includes(key)) values[key] = this.chosen[key] === usual ? null : String(this.chosen[key]);
    }
    toAddress(values);
  }

  /** Change some choices; `falls` lets the random number fall again. */
  choose(changes, falls = false) {
    for (const [key, value] of Object.entries(changes)) {
      if (CHOICES[key]?.possible(value, this.stages.size)) this.chosen[key] = value;
    }
    this.asked.hidden = true;
    if ("temperature" in changes || "top_k" in changes || "top_p" in changes) this.observed = null;
    if ("tokens" in changes) this.rearrange();
    this.dirty = true;
    this.falls ||= falls;
    this.remember();
    this.ask();
  }

  /** Which tokens stand in the list, and in which order; it `stays` where it is scrolled to, or begins anew. */
  rearrange(stays = false) {
    const { stages, header } = this;
    const wanted = this.finding.value.replaceAll(" ", "␣").toLowerCase();
    const ordered = this.chosen.tokens === VOCABULARY ? stages.order.slice().sort() : stages.order;
    this.places = wanted ? ordered.filter((token) => header.labels[token].toLowerCase().includes(wanted)) : ordered;
    this.ranked = !wanted && this.chosen.tokens !== VOCABULARY;
    this.space.style.height = `${ROW * this.places.length}px`;
    if (!stays) this.list.scrollTop = this.current = 0;
    this.ask();
  }

  fromSlider(key, value) {
    return key === "top_k" ? this.notches[value] : value;
  }

  toSlider(key, value) {
    if (key !== "top_k") return value;
    const at = this.notches.findIndex((notch) => notch >= value);
    return value === 0 || at < 0 ? this.notches.length - 1 : at;
  }

  // Drawing, once a frame

  ask() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.render();
    });
  }

  render() {
    const { stages } = this;
    if (!stages) return;
    if (this.dirty) {
      this.dirty = false;
      stages.set(this.chosen);
      this.entropies = [entropy(stages.before), entropy(stages.after)];
      this.drawn = this.seeds ? stages.draw(this.seeds[this.chosen.seed]) : null;
      this.renderControls();
      this.renderFacts();
      if (this.seeds) this.renderDraw();
    }
    this.renderRows();
    this.renderReading();
  }

  renderControls() {
    const { chosen } = this;
    for (const [key, { range, value }] of Object.entries(this.sliders)) {
      range.value = this.toSlider(key, chosen[key]);
      value.textContent = CHOICES[key].slider.says(chosen[key]);
      range.setAttribute("aria-valuetext", value.textContent);
    }
    this.orders.value = chosen.tokens;
    this.logs.setAttribute("aria-pressed", chosen.log);
    this.scale.textContent = chosen.log ? "bars: 0.1 to 100 %, equal ratios equally long" : "bars: 0 to 100 %";
    const sums = this.sumTexts();
    for (const cell of this.sums.children) cell.textContent = sums[cell.classList[1]];
    this.list.style.setProperty("--limit", chosen.top_p === 1 ? 2 : chosen.top_p);
  }

  /** What stands above each lane: its formula, or the sum that was kept. */
  sumTexts() {
    const { chosen, stages } = this;
    const divided = (sum) => `kept ${sum.toFixed(3)}, so ÷ ${sum.toFixed(3)}`;
    const reached = `${stages.reached[stages.kept - 1].toFixed(3)} reached after ${count(stages.kept)}`;
    return {
      token: `of ${count(stages.size)}`,
      logit: "z",
      before: "softmax(z)",
      hot: chosen.temperature ? `softmax(z ÷ ${chosen.temperature})` : "the likeliest alone",
      "top-k": chosen.top_k ? divided(stages.sumOfTopK) : "none cut",
      "top-p": chosen.top_p === 1 ? "none cut" : reached,
      after: divided(stages.sumKept),
    };
  }

  renderFacts() {
    const { stages, header, seeds } = this;
    const both = (say) => (seeds ? this.entropies.map(say).join(" → ") : say(this.entropies[0]));
    const fact = (name, value, help) => {
      const shown = make("span", "fact", undefined, { title: help });
      shown.append(make("b", "", name), ` ${value}`);
      return shown;
    };
    const bits = both((nats) => (nats / Math.LN2).toFixed(3)), nats = both((nats) => nats.toFixed(3));
    const among = "Among how many equally likely tokens the model might as well be choosing: e to the entropy.";
    const facts = [
      fact("Entropy", `${bits} bits (${nats} nats)`, "How unsure the model is: −Σ p ln p in nats, divided by ln 2 in bits."),
      fact("Perplexity", both((nats) => Math.exp(nats).toFixed(2)), among),
    ];
    const left = `${count(stages.size)} → ${count(stages.left)}`;
    if (seeds) facts.push(fact("Tokens left", left, "How many tokens can still be drawn."));
    const known = make("span", "fact", undefined, { title: "Rank: its place among all tokens, the likeliest being 1." });
    if (header.true === null) known.append(make("b", "", header.trueName), " unknown");
    else {
      const p = percent(stages.before[header.true]);
      known.append(make("b", "", `▲ ${header.trueName}`), " ", this.nameOf(header.true));
      known.append(` ${seeds ? `${p} → ${percent(stages.after[header.true])}` : p}, rank ${count(stages.rank[header.true] + 1)}`);
    }
    this.facts.replaceChildren(...facts, known);
  }

  /** The rows in sight, and one more. */
  renderRows() {
    const { list, rows, places } = this;
    const first = Math.floor(list.scrollTop / ROW);
    const seen = Math.min(places.length - first, Math.ceil(list.clientHeight / ROW) + 1);
    while (rows.length < seen) {
      const row = this.row();
      rows.push(row);
      this.space.append(row.element);
    }
    rows.forEach((row, i) => {
      row.element.hidden = i >= seen;
      if (i < seen) this.fill(row, first + i);
    });
    this.current = Math.max(0, Math.min(this.current, places.length - 1));
    const isSeen = this.current >= first && this.current < first + seen;
    if (isSeen) list.setAttribute("aria-activedescendant", `row${this.current}`);
    else list.removeAttribute("aria-activedescendant");
    this.shown = [first, seen];
  }

  row() {
    const element = make("div", "lanes token-row", undefined, { role: "option" });
    const name = make("span", "name");
    const label = make("span", "chip");
    const mark = make("span", "mark");
    name.append(label, mark);
    element.append(name);
    const lanes = {};
    for (const lane of ["logit", "before", "hot", "top-k", "top-p", "after"]) {
      const cell = make("span", `lane ${lane}`);
      const bar = make("span", "bar");
      const text = make("span", "number");
      cell.append(bar, text);
      element.append(cell);
      lanes[lane] = { cell, bar, text };
    }
    const seen = make("span", "seen");
    lanes.after.cell.append(seen);
    return { element, label, mark, lanes, seen };
  }

  length(probability) {
    return this.chosen.log ? Math.max(0, logarithmic(probability)) : probability;
  }

  fill({ element, label, mark, lanes, seen }, place) {
    const { stages, header } = this;
    const token = this.places[place], rank = stages.rank[token], cut = this.seeds ? stages.cut(token) : "";
    const name = header.labels[token];
    element.id = `row${place}`;
    element.style.top = `${ROW * place}px`;
    element.dataset.token = token;
    element.dataset.cut = cut;
    element.dataset.after = stages.after[token];
    element.classList.toggle("current", place === this.current && this.root.getRootNode().activeElement === this.list);
    element.classList.toggle("drawn", token === this.drawn);
    element.classList.toggle("touched", token === this.touched);
    element.classList.toggle("end-of-k", this.ranked && rank === stages.inTopK - 1 && stages.inTopK < stages.size);
    element.classList.toggle("end-of-p", this.ranked && rank === stages.kept - 1 && stages.kept < stages.inTopK);
    element.setAttribute("aria-posinset", place + 1);
    element.setAttribute("aria-setsize", this.places.length);
    element.setAttribute("aria-selected", token === this.drawn);
    element.setAttribute("aria-label", this.said(token, cut));
    label.textContent = shortened(name, LONGEST_NAME);
    label.classList.toggle("blank", name in SPOKEN);
    mark.textContent = token === header.true ? "▲" : "";
    for (const [lane, [from, to, number]] of Object.entries(this.lanesOf(token, cut))) {
      const { bar, text } = lanes[lane];
      bar.style.setProperty("--from", from);
      bar.style.setProperty("--to", to);
      text.textContent = number;
    }
    seen.hidden = !this.observed || cut !== "";
    if (!seen.hidden) seen.style.setProperty("--at", this.length(this.observed[token] / DRAWS));
  }

  /** What each lane shows of a token: where its bar begins and ends, 0 … 1, and its number. */
  lanesOf(token, cut) {
    const { stages } = this;
    const rank = stages.rank[token], z = stages.logits[token], highest = stages.logits[stages.order[0]];
    const upTo = (probability) => [0, this.length(probability), percent(probability)];
    const height = Number.isFinite(z) && highest > this.lowest ? (z - this.lowest) / (highest - this.lowest) : 0;
    const lanes = { logit: [0, height, brief(z)], before: upTo(stages.before[token]) };
    if (!this.seeds) return lanes;
    lanes.hot = upTo(stages.hot[token]);
    const ofTopK = this.length(Math.min(1, stages.hot[token] / stages.sumOfTopK));
    lanes["top-k"] = [0, ofTopK, cut === "top-k" ? "cut" : count(rank + 1)];
    const gone = [0, 0, ""], sum = cut === "top-p" ? "cut" : stages.reached[rank].toFixed(3);
    lanes["top-p"] = cut === "top-k" ? gone : [rank ? stages.reached[rank - 1] : 0, stages.reached[rank], sum];
    lanes.after = cut ? gone : upTo(stages.after[token]);
    return lanes;
  }

  /** A line of the list as it is read aloud. */
  said(token, cut) {
    const { stages, header } = this;
    const parts = [spoken(shortened(header.labels[token], LONGEST_NAME)), `the model says ${percent(stages.before[token])}`];
    if (this.seeds) parts.push(cut ? `cut by ${cut}` : `drawn with ${percent(stages.after[token])}`);
    if (token === this.drawn) parts.push("drawn with this seed");
    if (token === header.true) parts.push(header.trueName);
    return parts.join(", ");
  }

  nameOf(token) {
    return chip(shortened(this.header.labels[token], LONGEST_NAME));
  }

  /** The token under the pointer, or at the keyboard's place, through all stages in numbers. */
  renderReading() {
    const { stages, chosen, places } = this;
    const token = this.hovered ?? places[this.current];
    if (token === undefined) {
      this.reading.replaceChildren("No token of the vocabulary has this in it.");
      return;
    }
    const parts = [`token ${count(token)}`, `z ${brief(stages.logits[token])}`, `softmax ${percent(stages.before[token])}`];
    if (this.seeds) {
      const rank = stages.rank[token], cut = stages.cut(token);
      parts.push(chosen.temperature ? `÷ ${chosen.temperature}: ${percent(stages.hot[token])}` : "temperature 0");
      parts.push(`rank ${count(rank + 1)}`);
      if (cut) parts.push(`cut by ${cut}`);
      else {
        parts.push(`sum ${stages.reached[rank].toFixed(3)}`, `÷ ${stages.sumKept.toFixed(3)}: ${percent(stages.after[token])}`);
        parts.push(`${stages.start(token).toFixed(3)} to ${stages.ends[token].toFixed(3)} of the draw`);
      }
      if (this.observed) parts.push(`◆ ${percent(this.observed[token] / DRAWS)}`);
    }
    const end = this.touched === token && this.header.takes ? " · tap again to take it" : "";
    this.reading.replaceChildren(this.nameOf(token), ` ${parts.join(" → ")}${end}`);
  }

  renderDraw() {
    const { stages, header, drawn } = this;
    const number = this.seeds[this.chosen.seed];
    const intervals = this.intervals();
    this.renderIntervals(intervals);
    this.renderNames(intervals);
    this.fallen.style.left = `${100 * number}%`;
    this.outcome.replaceChildren(`${number.toFixed(3)} falls on `, this.nameOf(drawn), header.note);
    const said = `${number.toFixed(3)} falls on ${spoken(shortened(header.labels[drawn], LONGEST_NAME))}`;
    if (this.falls) {
      this.fall();
      announce(this.root, said);
    }
    this.falls = false;
    this.interval.dataset.number = number;
    this.interval.dataset.drawn = drawn;
    const { verdict } = this;
    if (this.observed) verdict.textContent = this.test();
    else verdict.textContent = "the tokens kept, in the vocabulary’s order; each as wide as its chance";
  }

  /** What the many draws say. */
  test() {
    const { statistic, freedom } = chiSquared(this.observed, this.stages);
    this.verdict.dataset.statistic = statistic;
    this.verdict.dataset.freedom = freedom;
    if (!freedom) return `◆ ${count(DRAWS)} draws, all of the one token left: nothing to test`;
    const usual = `${freedom} ± ${Math.sqrt(2 * freedom).toPrecision(2)}`;
    const found = `χ² = ${statistic.toPrecision(3)} with ${freedom} degrees of freedom`;
    return `◆ ${count(DRAWS)} draws: ${found}; by chance about ${usual}`;
  }

  fall() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const from = { transform: "translateY(-26px)", opacity: 0.2 };
    this.fallen.animate([from, { transform: "none", opacity: 1 }], { duration: 420, easing: "cubic-bezier(0.5, 0, 0.9, 0.5)" });
  }

  /** The tokens kept, in the vocabulary's order, as [token, start, end]; the drawn one alone, the narrow ones together (−1). */
  intervals() {
    const { stages, drawn } = this;
    const found = [];
    let gathered = null;
    for (let token = 0; token < stages.size; token++) {
      if (!stages.after[token]) continue;
      const start = stages.start(token), end = stages.ends[token];
      if (end - start >= NARROWEST || token === drawn) {
        gathered = null;
        found.push([token, start, end]);
      } else if (gathered) gathered[2] = end;
      else found.push((gathered = [-1, start, end]));
    }
    return found;
  }

  /** Neighbours differ in shade. */
  renderIntervals(intervals) {
    const paths = ["", "", "", ""];
    let odd = 0;
    for (const [token, start, end] of intervals) {
      const kind = token === this.drawn ? 3 : token < 0 ? 2 : (odd = 1 - odd);
      paths[kind] += `M${start} 0H${end}V1H${start}Z`;
    }
    this.parts.forEach((part, i) => part.setAttribute("d", paths[i]));
  }

  /** The name of a token on its interval, "" where it does not fit in so many pixels. */
  nameWithin(token, pixels) {
    const name = token < 0 ? "" : shortened(this.header.labels[token], LONGEST_ON_INTERVAL);
    return CHARACTER * ([...name].length + 1) <= pixels ? name : "";
  }

  renderNames(intervals) {
    const width = this.interval.clientWidth;
    const named = intervals.filter(([token, start, end]) => this.nameWithin(token, width * (end - start)));
    while (this.names.children.length < named.length) this.names.append(make("span"));
    [...this.names.children].forEach((place, i) => {
      place.hidden = i >= named.length;
      if (place.hidden) return;
      const [token, start, end] = named[i];
      place.textContent = this.nameWithin(token, width);
      place.style.left = `${100 * start}%`;
      place.style.width = `${100 * (end - start)}%`;
      place.classList.toggle("drawn", token === this.drawn);
    });
  }

  // What a reader does

  drawMany() {
    const { stages } = this;
    this.render(); // a slider may just have moved
    this.observed = new Int32Array(stages.size);
    for (const number of randomNumbers(DRAWS)) this.observed[stages.draw(number)] += 1;
    this.dirty = true;
    this.ask();
    announce(this.root, this.test());
  }

  /** Take a token: it joins the text. */
  take(token) {
    if (!this.header.takes) return;
    this.send("take", { token, generation: this.header.generation });
    if (!this.finding.value) return;
    this.finding.value = ""; // found
    this.rearrange();
  }

  tokenAt(event) {
    const row = event.target.closest(".token-row");
    return row ? Number(row.dataset.token) : null;
  }

  tokenUnder(event) {
    const box = this.interval.getBoundingClientRect();
    return this.stages.draw(Math.max(0, Math.min(1 - 1e-12, (event.clientX - box.left) / box.width)));
  }

  hover(token) {
    if (token === this.hovered) return;
    this.hovered = token;
    this.ask();
  }

  /** A click takes; of a finger the second tap does, as the first does what hovering does. */
  clicked(event) {
    const token = this.tokenAt(event);
    if (token === null) return;
    this.current = this.places.indexOf(token);
    if (event.pointerType !== "touch" || token === this.touched) this.take(token);
    this.touched = token;
    this.hovered = token;
    this.ask();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1), last = this.places.length - 1;
    const walk = {
      ArrowDown: this.current + 1,
      ArrowUp: this.current - 1,
      PageDown: this.current + page,
      PageUp: this.current - page,
      Home: 0,
      End: last,
    };
    if (event.key in walk) this.walkTo(Math.max(0, Math.min(last, walk[event.key])));
    else if ((event.key === "Enter" || event.key === " ") && last >= 0) this.take(this.places[this.current]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  walkTo(place) {
    const { list } = this;
    this.current = place;
    this.hovered = null;
    if (ROW * place < list.scrollTop) list.scrollTop = ROW * place;
    else if (ROW * (place + 1) > list.scrollTop + list.clientHeight) list.scrollTop = ROW * (place + 1) - list.clientHeight;
    this.ask();
  }

  // What stands behind the view

  numbers() {
    const { stages, header } = this;
    stages.set(this.chosen);
    const columns = ["id", "token", "logit", "before"];
    if (this.seeds) columns.push("scaled", "in top-k", "in top-p", "after", "from", "to");
    if (this.observed) columns.push(`drawn of ${DRAWS}`);
    const rows = Array.from(header.labels, (label, token) => {
      const row = [token, label, stages.logits[token], stages.before[token]];
      if (this.seeds) {
        const rank = stages.rank[token];
        row.push(stages.scaled[token], String(rank < stages.inTopK), String(rank < stages.kept));
        row.push(stages.after[token], stages.start(token), stages.ends[token]);
      }
      if (this.observed) row.push(this.observed[token]);
      return row;
    });
    return { columns, rows };
  }

  code() {
    if (!this.seeds) return this.header.code.join("");
    const { temperature, top_k, top_p, seed } = this.chosen;
    const given = [`temperature=${temperature}`];
    if (top_k) given.push(`top_k=${top_k}`);
    if (top_p !== 1) given.push(`top_p=${top_p}`);
    given.push(`seed=${seed}`);
    return this.header.code.join(`Sampling(${given.join(", ")})`);
  }

  /** The lines in sight and the draw, as a drawing that stands alone. */
  picture() {
    const { header } = this;
    const widths = this.seeds ? [100, 70, 125, 125, 125, 165, 170] : [140, 120, 620];
    let across = PICTURE_MARGIN;
    const names = Object.keys(LANES);
    const lanes = widths.map((width, i) => ({ name: names[i], x: (across += width) - width, width: width - 14 }));
    const tokens = this.places.slice(this.shown[0], this.shown[0] + PICTURE_ROWS);
    const under = PICTURE_TOP + ROW * tokens.length;
    const width = across + PICTURE_MARGIN, height = under + (this.seeds ? 96 : 10);
    const pen = new Pen(getComputedStyle(this.root).color);
    const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
    picture.append(shape("title", {}, header.title), shape("rect", { width, height, fill: background(this.root) }));
    picture.append(pen.text(PICTURE_MARGIN, 22, header.title, { "font-size": 14, "font-weight": 600 }));
    picture.append(...this.pictureHeads(pen, lanes));
    tokens.forEach((token, i) => picture.append(...this.pictureLine(pen, lanes, PICTURE_TOP + ROW * i, token)));
    if (this.seeds) picture.append(...this.pictureDraw(pen, under + 36, width));
    return picture;
  }

  pictureHeads(pen, lanes) {
    const sums = this.sumTexts();
    return lanes.flatMap(({ x, name }) => {
      const [title, , key] = LANES[name];
      const value = key ? ` ${this.sliders[key].value.textContent}` : "";
      return [pen.text(x, 44, title + value, { "font-weight": 600 }), pen.text(x, 58, sums[name], { "font-size": 10 })];
    });
  }

  pictureLine(pen, [first, ...lanes], y, token) {
    const cut = this.seeds ? this.stages.cut(token) : "";
    const label = `${shortened(this.header.labels[token], 9)}${token === this.header.true ? " ▲" : ""}`;
    const look = { "font-family": "monospace", "text-decoration": cut ? "line-through" : "none" };
    const marks = [pen.text(first.x, y + 13, label, look)];
    const shown = this.lanesOf(token, cut);
    for (const { name, x, width } of lanes) {
      const [from, to, number] = shown[name];
      const room = width - (name === "top-p" || name === "after" ? 44 : 0);
      const isGrey = name === "logit" || name === "before" || name === cut || (name === "hot" && cut === "temperature 0");
      const shade = name === "after" ? 0.75 : 0.35;
      marks.push(pen.bar(x + room * from, y, room * (to - from), isGrey ? ROLES.stream : ROLES.output, shade));
      marks.push(pen.text(x + width, y + 13, number, { "text-anchor": "end", "font-size": 11 }));
    }
    return marks;
  }

  pictureDraw(pen, y, width) {
    const { seed } = this.chosen, number = this.seeds[seed], all = width - 2 * PICTURE_MARGIN;
    const at = (place) => PICTURE_MARGIN + all * place;
    const name = shortened(this.header.labels[this.drawn], LONGEST_NAME);
    const marks = [pen.text(at(0), y - 14, `The draw, seed ${seed}: ${number.toFixed(3)} falls on ${name}`)];
    let odd = false;
    for (const [token, start, end] of this.intervals()) {
      odd = !odd;
      const isDrawn = token === this.drawn, shade = isDrawn ? 0.9 : token < 0 ? 0.1 : odd ? 0.35 : 0.2;
      const look = { "text-anchor": "middle", "font-size": 11, "font-family": "monospace", fill: isDrawn ? "#FFFFFF" : pen.ink };
      marks.push(pen.bar(at(start), y, all * (end - start), ROLES.output, shade));
      marks.push(pen.text(at((start + end) / 2), y + 13, this.nameWithin(token, all * (end - start)), look));
    }
    const small = { "font-size": 10 };
    marks.push(shape("line", { x1: at(number), x2: at(number), y1: y - 8, y2: y + ROW, stroke: pen.ink, "stroke-width": 2 }));
    marks.push(pen.text(at(0), y + 34, "0", small), pen.text(at(1), y + 34, "1", { ...small, "text-anchor": "end" }));
    return marks;
  }
}

/** Draws the texts and bars of a picture. */
class Pen {
  constructor(ink) {
    this.ink = ink;
  }

  text(x, y, content, look = {}) {
    return shape("text", { x, y, fill: this.ink, "font-size": 12, ...look }, content);
  }

  bar(x, y, width, fill, opacity) {
    return shape("rect", { x, y: y + 1, width: Math.max(0, width), height: ROW - 4, fill, opacity });
  }
}

// The last command that was obeyed, whichever view on the page obeyed it: one is given once.
Ledger.obeyed = 0;

export default view(Ledger);
