// A list of buttons that is one stop of the Tab key; the arrow keys walk it.
import { TabStop } from "../kit/elements.js";

/** The buttons of a list. It keeps the focus when it is filled again. */
export class Buttons {
  /**
   * @param {HTMLElement} list
   * @param {() => void} leave Escape was pressed on a button
   */
  constructor(list, leave) {
    this.list = list;
    this.stop = new TabStop();
    list.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      else if (!this.walk(event.key)) return;
      event.preventDefault();
      event.stopPropagation(); // the page's own keys must not see them
    });
  }

  /** @returns {HTMLElement[]} */
  get all() {
    return [...this.list.querySelectorAll("button")];
  }

  /** The number of the button that has the focus, −1 if none. */
  get focused() {
    const { activeElement } = /** @type {ShadowRoot} */ (this.list.getRootNode());
    return this.all.indexOf(/** @type {any} */ (activeElement));
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

  /** Lead the focus to another button; whether this is a key that does. @param {string} key */
  walk(key) {
    const { all } = this;
    const at = all.indexOf(/** @type {HTMLElement} */ (this.stop.element)),
      last = all.length - 1;
    const to = { ArrowUp: at - 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowRight: at + 1, Home: 0, End: last }[key];
    if (to === undefined || last < 0) return false;
    this.focus(all[Math.max(0, Math.min(last, to))]);
    return true;
  }
}
