// Tells Python how large the page is drawn, so that figures drawn there can be as large.

import { make } from "../kit/elements.js";
import { USUAL, rem } from "../kit/size.js";
import { view } from "../kit/view.js";

// Steps of size below which a figure is not drawn again, and milliseconds that the window must rest.
const STEPS = 8,
  PAUSE = 300;

class PageSize {
  /** @param {HTMLElement} root */
  constructor(root) {
    root.replaceChildren(make("span")); // a view that is empty has not come yet
    this.known = 1;
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.resting = undefined;
    this.resized = () => {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.tell(), PAUSE);
    };
    window.addEventListener("resize", this.resized);
  }

  /** @param {{ known: number }} payload */
  show({ known }) {
    this.known = known;
    this.tell();
  }

  tell() {
    const size = Math.max(1, Math.min(2.5, Math.round((STEPS * rem()) / USUAL) / STEPS));
    if (size !== this.known) this.send("size", { size });
    this.known = size;
  }

  close() {
    clearTimeout(this.resting);
    window.removeEventListener("resize", this.resized);
  }
}

export default view(PageSize);
