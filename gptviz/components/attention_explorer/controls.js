// The buttons above the tokens: which quantity, which direction, which heads, which colours.

import { make } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
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

/** @typedef {import("./settings.js").Choice} Choice */

export class Controls {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "bar");
    this.more = make("div", "bar more");
    this.opener = make("button", "tool", "More", { title: "What is needed less often" });
    this.opener.onclick = () => this.unfold(Boolean(this.more.hidden));
    this.unfold(false);
    /** @type {{ buttons: HTMLButtonElement[], chosen: (choice: Choice) => string }[]} */
    this.groups = [];
    const shows = Object.entries(SHOWS).map(([value, { name, help }]) => [value, name, help]);
    this.#group(
      "Quantity",
      shows,
      ({ show }) => show,
      (show) => explorer.choose({ show: /** @type {Choice["show"]} */ (show) }),
    );
    this.#group(
      "Direction",
      DIRECTIONS,
      ({ direction }) => direction,
      (direction) => explorer.choose({ direction: /** @type {Choice["direction"]} */ (direction) }),
    );
    this.#group(
      "Heads",
      HEADS,
      ({ heads }) => (Array.isArray(heads) ? "some" : heads),
      (value) => explorer.choose({ heads: value === "some" ? this.#toCompare() : value }),
    );
    this.#group(
      "Colours",
      LOG,
      ({ log }) => (log ? "log" : ""),
      () => explorer.choose({ log: !explorer.choice.log }),
    );
    const row = make("div", "group", undefined, { role: "group", "aria-label": "Edits" });
    /** @type {HTMLButtonElement} */
    this.edit = make("button", "tool", "");
    this.edit.onclick = () => explorer.switch();
    row.append(this.edit);
    this.element.append(row, this.opener, this.more);
  }

  /** @param {boolean} isOpen */
  unfold(isOpen) {
    this.more.hidden = !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
  }

  /**
   * @param {string} label
   * @param {string[][]} options
   * @param {(choice: Choice) => string} chosen
   * @param {(value: string) => void} choose
   */
  #group(label, options, chosen, choose) {
    const row = make("div", "group", undefined, { role: "group", "aria-label": label });
    const folded = make("div", "group", undefined, { role: "group", "aria-label": `${label}: more` });
    const buttons = options.map(([value, name, help]) => {
      const button = make("button", "tool", name, { title: help, "data-help": help, "data-value": value });
      button.onclick = () => choose(value);
      (FOLDED.includes(value) ? folded : row).append(button);
      return button;
    });
    this.groups.push({ buttons, chosen });
    if (row.firstChild) this.element.append(row);
    if (folded.firstChild) this.more.append(folded);
  }

  /** The heads on screen, for others to be added. @returns {[number, number][]} */
  #toCompare() {
    const { selection } = this.explorer;
    return selection.heads.flatMap(([block, head]) => (head === MEAN ? [selection.chosen] : [[block, head]]));
  }

  /** Bring the buttons in line with what is chosen. */
  draw() {
    const { choice, numbers, root } = this.explorer;
    for (const { buttons, chosen } of this.groups) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === chosen(choice)));
    }
    if (this.more.querySelector("[aria-pressed=true]")) this.unfold(true);
    const possible = this.explorer.choices.declared.show.names ?? [];
    // A rollout has no heads.
    const isRollout = choice.show === "rollout";
    for (const button of this.groups[2].buttons) {
      button.disabled = isRollout;
      button.title = isRollout ? NO_HEADS : /** @type {string} */ (button.dataset.help);
    }
    for (const button of this.groups[0].buttons) button.hidden = !possible.includes(/** @type {string} */ (button.dataset.value));
    const [block, head] = this.explorer.switched;
    const unit = head === null ? `the attention of block ${block}` : `head ${head} of block ${block}`;
    const edit = numbers.edited?.[head === null ? `${block}` : `${block}.${head}`];
    this.edit.hidden = !numbers.edited || isRollout;
    this.edit.textContent = edit ? "Bring back" : "Switch off";
    this.edit.title = edit
      ? `Take the edit ${edit} away: ${unit} computes what it did before`
      : `Replace what ${unit} computes by zero, on every page`;
    this.edit.setAttribute("aria-label", `${this.edit.textContent} ${unit}`);
    root.style.setProperty("--shown", ROLES[SHOWS[choice.show].role]);
  }
}
