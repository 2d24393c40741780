// What acts on the page around it, and is not seen: each helper while the payload asks for it.

import { make } from "../kit/elements.js";
import { remembered } from "../kit/remembered.js";
import { View, view } from "../kit/view.js";
import { Clipboard } from "./clipboard.js";
import { ClosedPrompt } from "./closed_prompt.js";
import { HistorySteps } from "./history_steps.js";
import { LessonTicks } from "./lesson_ticks.js";
import { PageAddress } from "./page_address.js";
import { Paper } from "./paper.js";
import { PopoverKeys } from "./popover_keys.js";
import { Presenter } from "./presenter.js";
import { StepInSight } from "./step_in_sight.js";

/** @typedef {{ show?: (asked: any) => void }} Helper */

/** `signal`: the helper's end. @type {Record<string, new (view: PageHelpers, signal: AbortSignal) => any>} */
const HELPERS = {
  history: HistorySteps,
  popovers: PopoverKeys,
  prompt: ClosedPrompt,
  ticks: LessonTicks,
  speaker: Presenter,
  sight: StepInSight,
  address: PageAddress,
  clipboard: Clipboard,
  paper: Paper,
};

class PageHelpers extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    root.replaceChildren(make("span")); // a view that is empty has not come yet
    /** @type {Map<string, { helper: Helper, ending: AbortController }>} */
    this.helpers = new Map();
  }

  /** @param {{ asked: Record<string, object> }} payload what each helper is asked for; those without an entry go */
  show({ asked }) {
    for (const [name, Helper] of Object.entries(HELPERS)) {
      if (name in asked) {
        const begin = (ending = new AbortController()) => ({ helper: new Helper(this, ending.signal), ending });
        remembered(this.helpers, name, begin).helper.show?.(asked[name]);
      } else {
        this.helpers.get(name)?.ending.abort();
        this.helpers.delete(name);
      }
    }
  }

  close() {
    super.close();
    this.show({ asked: {} });
  }
}

export default view(PageHelpers);
