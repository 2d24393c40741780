// What acts on the page around it, and is not seen: each helper while the payload asks for it.

import { make } from "../kit/elements.js";
import { view } from "../kit/view.js";
import { Clipboard } from "./clipboard.js";
import { ClosedPrompt } from "./closed_prompt.js";
import { HistorySteps } from "./history_steps.js";
import { LessonTicks } from "./lesson_ticks.js";
import { PageAddress } from "./page_address.js";
import { Paper } from "./paper.js";
import { PopoverKeys } from "./popover_keys.js";
import { Presenter } from "./presenter.js";
import { StepInSight } from "./step_in_sight.js";

/** @typedef {{ show?: (asked: any) => void, close?: () => void }} Helper */

/** @type {Record<string, new (view: PageHelpers) => Helper>} */
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

class PageHelpers {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.replaceChildren(make("span")); // a view that is empty has not come yet
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {}; // set from outside
    /** @type {Map<string, Helper>} */
    this.helpers = new Map();
  }

  /** @param {{ asked: Record<string, object> }} payload what each helper is asked for; those without an entry go */
  show({ asked }) {
    for (const [name, Helper] of Object.entries(HELPERS)) {
      const helper = this.helpers.get(name) ?? (name in asked ? new Helper(this) : null);
      if (!helper) continue;
      this.helpers.set(name, helper);
      if (name in asked) helper.show?.(asked[name]);
      else {
        helper.close?.();
        this.helpers.delete(name);
      }
    }
  }

  close() {
    this.show({ asked: {} });
  }
}

export default view(PageHelpers);
