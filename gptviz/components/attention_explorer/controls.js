// The buttons above the tokens: which quantity, which direction, which heads, which colours.

import { button, make } from "../kit/elements.js";
import { MEAN, SHOWS } from "./settings.js";

const DIRECTIONS = [
  ["out", "What it reads", "A token as query: its row of the pattern"],
  ["in", "Who reads it", "A token as key: its column of the pattern"],
];
const HEADS = [
  [MEAN, "Mean", "The mean of all heads of the block"],
  ["one", "One head", "A click on a thumbnail chooses it"],
  ["some", "Compare", "A click on a thumbnail adds the head, in a colour of its own, or takes it out; so do Shift-click and +"],
  ["all", "All of the block", "Every head of the block, each in its own colour"],
];
const NO_HEADS =
  "Rollout takes the mean of all heads of every block, so there is none to choose: a click on a thumbnail chooses its block";
// The options that are folded away under "More", until one of them is chosen.
const FOLDED = ["rollout", "some", "all", "log"];
const LOG = [["log", "Log colours", "Colours on a logarithmic scale, down to 0.1 %, so that small shares show"]];

/** @typedef {"show" | "direction" | "heads" | "log"} Key of a choice that has buttons */

export class Controls {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "bar");
    this.more = make("div", "bar more");
    this.opener = button("More", () => this.unfold(Boolean(this.more.hidden)), { title: "What is needed less often" });
    this.unfold(false);
    /** @type {{ buttons: HTMLButtonElement[], key: Key }[]} */
    this.groups = [];
    const shows = Object.entries(SHOWS).map(([value, { name, help }]) => [value, name, help]);
    this.#group("Quantity", shows, "show");
    this.#group("Direction", DIRECTIONS, "direction");
    this.#group("Heads", HEADS, "heads");
    this.#group("Colours", LOG, "log");
    this.edit = button("", () => explorer.switch());
    const edits = make("div", "group", [this.edit], { role: "group", "aria-label": "Edits" });
    this.element.append(edits, this.opener, this.more);
  }

  /** @param {boolean} isOpen */
  unfold(isOpen) {
    this.more.hidden = !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
  }

  /** The buttons of a choice. @param {string} label @param {string[][]} options @param {Key} key */
  #group(label, options, key) {
    /** @param {string} value */
    const choose = (value) => {
      const { selection, choice } = this.explorer;
      // The heads on screen, for others to be added.
      const toCompare = () => selection.heads.map(([block, head]) => (head === MEAN ? selection.chosen : [block, head]));
      this.explorer.choose({ [key]: value === "log" ? !choice.log : value === "some" ? toCompare() : value });
    };
    const buttons = options.map(([value, name, help]) =>
      button(name, () => choose(value), { title: help, "data-help": help, "data-value": value }),
    );
    this.groups.push({ buttons, key });
    const folded = buttons.filter(({ dataset }) => FOLDED.includes(dataset.value ?? "")),
      shown = buttons.filter((one) => !folded.includes(one));
    if (shown.length) this.element.append(make("div", "group", shown, { role: "group", "aria-label": label }));
    if (folded.length) this.more.append(make("div", "group", folded, { role: "group", "aria-label": `${label}: more` }));
  }

  /** Bring the buttons in line with what is chosen. */
  draw() {
    const { choice, numbers } = this.explorer;
    for (const { buttons, key } of this.groups) {
      const chosen = choice[key],
        pressed = Array.isArray(chosen) ? "some" : chosen === true ? "log" : chosen;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.value === pressed));
    }
    if (this.more.querySelector("[aria-pressed=true]")) this.unfold(true);
    const possible = this.explorer.choices.declared.show.names ?? [];
    // A rollout has no heads.
    const isRollout = choice.show === "rollout";
    for (const one of this.groups[2].buttons) {
      one.disabled = isRollout;
      one.title = isRollout ? NO_HEADS : /** @type {string} */ (one.dataset.help);
    }
    for (const one of this.groups[0].buttons) one.hidden = !possible.includes(/** @type {string} */ (one.dataset.value));
    const [block, head] = this.explorer.switched;
    const unit = head === null ? `the attention of block ${block}` : `${numbers.headName(block, head)} of block ${block}`;
    const edit = numbers.edited?.[head === null ? `${block}` : `${block}.${head}`];
    this.edit.hidden = !numbers.edited || isRollout;
    this.edit.textContent = edit ? "Bring back" : "Switch off";
    this.edit.title = edit
      ? `Take the edit ${edit} away: ${unit} computes what it did before`
      : `Replace what ${unit} computes by zero, on every page`;
    this.edit.setAttribute("aria-label", `${this.edit.textContent} ${unit}`);
  }
}
