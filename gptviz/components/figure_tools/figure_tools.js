// Buttons for the picture of the figure next to them. Also tells Python how large the page is drawn, so that figures drawn there
// can be as large.

import { pictureTools } from "../kit/details.js";
import { picture } from "../kit/picture.js";
import { USUAL, rem } from "../kit/size.js";
import { view } from "../kit/view.js";
import { drawingOf, figureBeside } from "./figure.js";

// Steps of size below which a figure is not drawn again, and milliseconds that the window must rest.
const STEPS = 8,
  PAUSE = 300;

class FigureTools {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
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

  /** @param {{ known: number, name: string, sharp: boolean, heading: import("../kit/picture.js").Heading }} payload */
  show({ known, name, sharp, heading }) {
    this.known = known;
    this.tell();
    this.root.replaceChildren(pictureTools(this.root, { name, isSharp: sharp, picture: () => this.picture(heading) }));
  }

  /** What is on screen now, as a reader has zoomed and turned it. @param {import("../kit/picture.js").Heading} heading */
  picture(heading) {
    const plot = figureBeside(this.root);
    if (!plot) throw new Error("the figure has not come yet");
    const copy = drawingOf(plot);
    return picture(this.root, heading, copy.drawing, copy);
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

export default view(FigureTools);
