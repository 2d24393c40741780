// The generation tree: branches of tokens as boxes of text, left to right. Text of a model or a user is only set as textContent.
import { toAddress } from "../kit/address.js";
import { isDark } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { bringIntoView, make } from "../kit/elements.js";
import { onKeys } from "../kit/keys.js";
import { spoken } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { Attention } from "./attention.js";
import { Boxes } from "./boxes.js";
import { Card } from "./card.js";
import { WALKING, walk } from "./keyboard.js";
import { NEXT, Nodes, START, nats } from "./nodes.js";
import { pictureOf } from "./picture.js";
import { Replay } from "./replay.js";

/** @typedef {import("./nodes.js").Place} Place */

/** The whole view. */
class GenerationTree extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {any} */
    this.payload = null; // the last one
    /** @type {Nodes | null} */
    this.nodes = null;
    /** @type {Place | null} */
    this.looked = null; // what is under the pointer or the keyboard
    this.byTouch = false;
    /** @type {HTMLElement | null} */
    this.tapped = null;
    this.boxes = new Boxes();
    this.replay = new Replay(() => {
      this.looked = null;
      this.render();
      const { node } = this.replay;
      if (node !== null) this.boxes.reveal(this.boxes.chips.get(node));
    });
    const leave = () => this.focus(this.boxes.chips.get(/** @type {number} */ (this.looked)) ?? this.boxes.stop.element);
    this.attention = new Attention({
      chosen: () => this.render(),
      again: () => this.tell("attend", { at: this.shown.before(this.card.at) ?? this.shown.current }),
      pointed: (one) => bringIntoView(one, /** @type {HTMLElement} */ (one.closest(".text"))),
      leave,
    });
    this.card = new Card(this.attention, (at, token) => this.takeInstead(at, token), leave);
    this.attentionScale = scaleOf("pattern", "≤ 0.1", "100 %", "attention (log scale)");
    this.status = make("span", "status");
    this.build();
    this.listen();
    this.closing.signal.addEventListener("abort", () => this.replay.stop());
    const { stage } = this.boxes;
    const hasOtherRoom = () => this.nodes && `${stage.clientWidth} ${stage.clientHeight}` !== this.boxes.room;
    this.whenResized(() => hasOtherRoom() && this.boxes.arrange(true, this.looked), stage);
  }

  build() {
    const offered = {
      name: "generation-tree",
      numbers: () => this.shown.table(),
      code: () => this.shown.code,
      picture: () => pictureOf(this.root, this.boxes, this.payload.heading),
    };
    const scales = [scaleOf("output", "0", "100 %", "probability"), this.attentionScale];
    this.root.replaceChildren(
      make("div", "main", [this.boxes.stage, this.card.element]),
      make("div", "row bar", [this.replay.element, tools(this.root, offered)]),
      make("div", "legend note", [...scales, make("span", "", "Σ: sum of ln p"), this.status]),
    );
  }

  listen() {
    const { stage } = this.boxes,
      card = this.card.element;
    stage.addEventListener("pointerover", (event) => {
      const at = this.boxes.at(event);
      if (at !== null) this.look(at);
    });
    // On the way to the card it stays what it is, so that a token in it can be clicked.
    /** @param {any} event */
    const left = (event) => {
      const to = event.relatedTarget;
      const stays = to && (stage.contains(to) || card.contains(to));
      if (event.pointerType !== "touch" && !this.byTouch && !stays) this.look(null);
    };
    for (const part of [stage, card]) {
      part.addEventListener("pointerleave", left);
      part.addEventListener("focusout", left);
    }
    stage.addEventListener("pointerdown", (event) => (this.byTouch = event.pointerType === "touch"));
    stage.addEventListener("focusin", (event) => {
      const element = this.boxes.elementOf(event);
      if (!element) return;
      this.boxes.stop.reach(element);
      if (element.matches(":focus-visible")) this.look(this.boxes.at(event));
    });
    stage.addEventListener("click", (event) => this.clicked(event));
    onKeys(stage, (event) => this.key(event));
  }

  /** The tree that is shown: there is one as soon as anything can be clicked. */
  get shown() {
    return /** @type {Nodes} */ (this.nodes);
  }

  // Payloads

  /** @param {any} payload */
  show(payload) {
    const isAnother = payload.number !== this.nodes?.number,
      { current, size } = this.nodes ?? {};
    const nodes = new Nodes(payload);
    this.nodes = nodes;
    const isMoved = isAnother || nodes.current !== current;
    this.payload = payload;
    toAddress(payload.address);
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light"; // of sliders and scroll bars
    this.replay.take(nodes.path, isMoved);
    if (isMoved && (this.looked === NEXT || !nodes.has(this.looked))) this.looked = null;
    this.status.textContent = payload.status;
    this.attention.offer(nodes.layers, nodes.headsOfLayer, payload.declared);
    this.attentionScale.hidden = !nodes.layers;
    // A token taken in the card with the keyboard: it continues from there.
    const isFromCard = isMoved && !isAnother && this.card.lines.focused >= 0;
    if (isFromCard) this.looked = null;
    this.boxes.draw(nodes, payload, { isMoved: isMoved || nodes.size !== size, looked: this.looked });
    this.render();
    if (isFromCard) this.boxes.chips.get(nodes.current)?.focus({ preventScroll: true });
    if (!isMoved || payload.playing || isAnother) return;
    const { length } = nodes.path;
    const sum = length ? `; sum of log-probabilities ${nats(nodes.node(nodes.current).total)}` : "";
    announce(this.root, `At token ${length} of the text: ${spoken(nodes.label(nodes.current))}${sum}`);
  }

  // Looking

  /** @param {Place | null} at */
  look(at) {
    if (at === this.looked) return;
    this.looked = at;
    this.render();
  }

  /** Show what is looked at: the token under the pointer, that of the replay, or the last one. */
  render() {
    const { nodes, boxes, card, attention, payload, replay } = this;
    if (!nodes) return;
    const looked = this.looked ?? replay.node;
    this.root.classList.toggle("attending", looked !== null);
    this.root.classList.toggle("replaying", replay.step !== null);
    boxes.mark(looked);
    boxes.fade(replay.later);
    if (payload.playing && this.looked === null) card.wait();
    else card.show(looked ?? nodes.current, nodes, payload);
    replay.render(payload.playing);
    const { at } = card;
    const found = at === START ? null : nodes.attended(at, attention.head);
    const chipAt = boxes.chipAt(at);
    attention.tint(looked === null ? null : found, chipAt);
    if (at === START) attention.clear();
    else if (found) attention.fill(found, chipAt);
    else attention.explain(payload.playing);
  }

  /** @param {HTMLElement | SVGElement | null | undefined} element */
  focus(element) {
    if (!element) return;
    this.boxes.stop.focus(element);
    this.look(this.boxes.at(/** @type {any} */ ({ target: element })));
    this.boxes.reveal(element);
  }

  // Actions of a reader

  /** @param {string} event @param {object} fields */
  tell(event, fields) {
    this.send(event, { number: this.nodes?.number, ...fields });
  }

  /** @param {any} event */
  clicked(event) {
    const element = this.boxes.elementOf(event),
      at = this.boxes.at(event);
    if (!element || at === null) return;
    // On a touch screen the first tap looks, the second acts.
    if (this.byTouch && this.tapped !== element) {
      this.tapped = element;
      this.look(at);
      return;
    }
    this.tapped = null;
    if (at !== NEXT) this.goTo(at);
    else if (!element.classList.contains("closed")) this.takeInstead(NEXT, Number(element.dataset.token));
  }

  /** @param {number} id */
  goTo(id) {
    if (id !== this.nodes?.current || this.payload.playing) this.tell("go", { at: id });
  }

  /** Take another token in the place of `at`. @param {Place} at @param {number} token */
  takeInstead(at, token) {
    const nodes = this.shown;
    if (at === NEXT) {
      if (!this.payload.playing && !this.payload.full) this.tell("take", { at: nodes.current, token });
      return;
    }
    if (at === START || !nodes.has(at)) return;
    const node = nodes.node(at);
    if (token !== node.token) this.tell("take", { at: node.parent, token });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const element = this.boxes.elementOf(event);
    if (!element) return false;
    const line = this.boxes.next.lines.indexOf(element),
      spot = line >= 0 ? { line } : { node: Number(element.dataset.node) };
    if (event.key === "Enter" || event.key === " ") this.byTouch = false;
    const token = /^[1-9]$/.test(event.key) ? this.card.tokenOf(Number(event.key)) : null;
    if (token !== null) this.takeInstead("line" in spot ? NEXT : spot.node, token);
    else if (event.key === "Escape") this.replay.stepTo(null);
    else if (WALKING.includes(event.key)) this.walk(event.key, spot);
    else return false;
    return true;
  }

  /** @param {string} key @param {import("./keyboard.js").Spot} spot */
  walk(key, spot) {
    const { boxes } = this;
    const to = walk(key, spot, this.shown, boxes.outline, boxes.next.lines.length);
    if (to) this.focus("line" in to ? boxes.next.lines[to.line] : boxes.chips.get(to.node));
  }
}

/** A scale of the legend. @param {string} role @param {string} low @param {string} high @param {string} meaning */
function scaleOf(role, low, high, meaning) {
  return make("span", "aligned item", [
    make("span", "", low),
    make("span", "scale tints", "", { style: `--role: var(--${role})` }),
    make("span", "", `${high} ${meaning}`),
  ]);
}

export default view(GenerationTree);
