// The script of a part of a payload: it shows nothing, and keeps the part as long as the page has it. See parts.js.

import { keep } from "./parts.js";

// The bytes begin with the name of the part, as long as this.
const NAME = 16;
/** @type {WeakMap<ParentNode, () => void>} */
const letGo = new WeakMap();

/** @param {import("./view.js").Mounted} mounted */
export default function part({ data, parentElement }) {
  const before = letGo.get(parentElement);
  const leave = keep(new TextDecoder().decode(data.subarray(0, NAME)), data.subarray(NAME));
  before?.();
  letGo.set(parentElement, leave);
  return () => {
    letGo.get(parentElement)?.();
    letGo.delete(parentElement);
  };
}
