// Buttons for the picture of the figure next to them. Also tells Python how large the page is drawn, so that figures drawn there
// can be as large.

import { pictureItems } from "../kit/details.js";
import { more } from "../kit/more.js";
import { picture } from "../kit/picture.js";
import { USUAL, rem } from "../kit/size.js";
import { View, view } from "../kit/view.js";
import { drawingOf, figureBeside } from "./figure.js";

// Steps of size below which a figure is not drawn again, and milliseconds that the window must rest.
const STEPS = 8,
  PAUSE = 300;

class FigureTools extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.known = 1;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let resting;
    const resized = () => {
      clearTimeout(resting);
      resting = setTimeout(() => this.tell(), PAUSE);
    };
    const { signal } = this.closing;
    window.addEventListener("resize", resized, { signal });
    signal.addEventListener("abort", () => clearTimeout(resting));
  }

  /** @param {{ known: number, name: string, sharp: boolean, heading: import("../kit/picture.js").Heading }} payload */
  show({ known, name, sharp, heading }) {
    this.known = known;
    this.tell();
    const details = { name, isSharp: sharp, picture: () => this.picture(heading) };
    this.root.replaceChildren(more(pictureItems(this.root, details)));
  }

  /** What is on screen now, as a reader has zoomed and turned it. @param {import("../kit/picture.js").Heading} heading */
  picture(heading) {
    const plot = figureBeside(this.root);
    if (!plot) throw new Error("the figure has not come yet");
    return picture(this.root, heading, drawingOf(plot));
  }

  tell() {
    const size = Math.max(1, Math.min(2.5, Math.round((STEPS * rem()) / USUAL) / STEPS));
    if (size !== this.known) this.send("size", { size });
    this.known = size;
  }
}

export default view(FigureTools);
