// The generation tree as a drawing that stands alone: what is on screen, with all of the text that its boxes scroll.

import { PALEST, STRONGEST } from "../kit/chips.js";
import { background, mixed } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { picture } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";

/** @param {HTMLElement} root @param {import("./boxes.js").Boxes} boxes @param {{ model?: string, prompt?: string, settings?: string[] }} heading */
export function pictureOf(root, boxes, heading) {
  const copy = boxes.unfolded(() => copyOf([boxes.canvas]));
  const scale = root.classList.contains("attending")
    ? scaleOf(root, ROLES.pattern, "≤ 0.1", "attention of the step (log scale); grey: the prompt")
    : scaleOf(root, ROLES.output, "0", "probability under the model; grey: the prompt; Σ: sum of the logarithms, in nats");
  return picture(root, { title: "What the model wrote, as a tree", ...heading, scale }, copy);
}

/** @param {HTMLElement} root @param {string} colour @param {string} low @param {string} unit @returns {import("../kit/picture.js").Scale} */
function scaleOf(root, colour, low, unit) {
  /** @param {number} percent of the colour @returns {string} */
  const tint = (percent) => `rgb(${mixed(colour, background(root), percent / 100).map(Math.round)})`;
  return { stops: [...[PALEST, STRONGEST].entries()].map(([at, share]) => [at, tint(share)]), low, high: "100 %", unit };
}
