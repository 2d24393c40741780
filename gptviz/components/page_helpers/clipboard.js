// A clipboard for pages from http, for which browsers have none: Streamlit's buttons that copy code and links would do nothing and
// say nothing there.

import { copiedByCommand } from "../kit/clipboard.js";
import { dialog } from "../kit/details.js";
import { make } from "../kit/elements.js";

/** @param {{ root: HTMLElement }} view whose window says what to do where the browser forbids the old way too */
export function clipboard({ root }) {
  if (isSecureContext) return;
  const writeText = async (/** @type {string} */ text) => {
    const lines = make("pre", "code scroll", text, { tabindex: "0" });
    root.append(lines);
    if (copiedByCommand(lines)) return lines.remove();
    dialog(root, "Press Ctrl+C to copy", lines);
    getSelection()?.selectAllChildren(lines);
    throw new Error("the browser forbids it");
  };
  Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText } });
}
