// What acts on the page around it, and is not seen: each helper while the payload asks for it.

import { make } from "../kit/elements.js";
import { remembered } from "../kit/remembered.js";
import { View, view } from "../kit/view.js";
import { clipboard } from "./clipboard.js";
import { closedPrompt } from "./closed_prompt.js";
import { historySteps } from "./history_steps.js";
import { lessonTicks } from "./lesson_ticks.js";
import { pageAddress } from "./page_address.js";
import { paper } from "./paper.js";
import { popoverKeys } from "./popover_keys.js";
import { presenter } from "./presenter.js";
import { questionInSight } from "./question_in_sight.js";
import { StepInSight } from "./step_in_sight.js";

/** @typedef {{ show: (asked: any) => void } | void} Helper what it does with what it is asked for; most only begin */

/** `signal`: the helper's end. @type {Record<string, (view: PageHelpers, signal: AbortSignal) => Helper>} */
const HELPERS = {
  history: historySteps,
  popovers: popoverKeys,
  prompt: closedPrompt,
  ticks: lessonTicks,
  speaker: presenter,
  sight: (_, signal) => new StepInSight(signal),
  question: questionInSight,
  address: pageAddress,
  clipboard,
  paper,
};

class PageHelpers extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    root.replaceChildren(make("span")); // a view that is empty has not come yet
    /** @type {Map<string, { helper: Helper, ending: AbortController }>} */
    this.helpers = new Map();
    this.closing.signal.addEventListener("abort", () => this.show({ asked: {} }));
  }

  /** @param {{ asked: Record<string, object> }} payload what each helper is asked for; those without an entry go */
  show({ asked }) {
    for (const [name, helper] of Object.entries(HELPERS)) {
      if (name in asked) {
        const begin = (ending = new AbortController()) => ({ helper: helper(this, ending.signal), ending });
        remembered(this.helpers, name, begin).helper?.show(asked[name]);
      } else {
        this.helpers.get(name)?.ending.abort();
        this.helpers.delete(name);
      }
    }
  }
}

export default view(PageHelpers);
