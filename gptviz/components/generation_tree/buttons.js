// A list of buttons that is one stop of the Tab key; the arrow keys walk it.
import { focusedBeside, TabStop } from "../kit/elements.js";
import { ACROSS, along, DOWN, onKeys } from "../kit/keys.js";

/** The buttons of a list. It keeps the focus when it is filled again. */
export class Buttons {
  /**
   * @param {HTMLElement} list
   * @param {() => void} leave Escape was pressed on a button
   */
  constructor(list, leave) {
    this.list = list;
    this.stop = new TabStop();
    onKeys(list, ({ key }) => {
      const { all } = this;
      const to = along(key, all.indexOf(/** @type {HTMLElement} */ (this.stop.element)), all.length, { ...ACROSS, ...DOWN });
      if (to !== null) this.focus(all[to]);
      else if (key === "Escape") leave();
      else return false;
      return true;
    });
  }

  /** @returns {HTMLElement[]} */
  get all() {
    return [...this.list.querySelectorAll("button")];
  }

  /** The number of the button that has the focus, −1 if none. */
  get focused() {
    return this.all.indexOf(/** @type {HTMLElement} */ (focusedBeside(this.list)));
  }

  /** Put these into the list: buttons, or notes in their place. @param {HTMLElement[]} children */
  fill(children) {
    const { focused } = this;
    this.list.replaceChildren(...children);
    const { all } = this;
    for (const one of all) one.tabIndex = -1;
    const stop = all[Math.max(0, focused)] ?? all[0];
    if (focused >= 0) this.focus(stop);
    else this.stop.reach(stop);
  }

  /** @param {HTMLElement | undefined} button */
  focus(button) {
    const around = this.list.parentElement;
    this.stop.focus(button, this.list, ...(around ? [around] : []));
  }
}
