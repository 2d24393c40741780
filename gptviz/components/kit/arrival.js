// The script and the style sheet of a view come in a separate message, which Streamlit sends once; that with the payload is
// small. Here the two meet, in whichever order they come.

import { pending, remembered, sharedMap } from "./remembered.js";

/**
 * @typedef {import("./view.js").Mounted} Mounted
 * @typedef {(component: Mounted) => () => void} Mount
 */

/** @param {string} name @returns {import("./remembered.js").Pending<{ mount: Mount, sheet: CSSStyleSheet }>} */
const placeOf = (name) => remembered(sharedMap("gptviz views"), name, pending);

/** The script of the view `name` is here. @param {string} name @param {Mount} mount @param {string} style */
export function provide(name, mount, style) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  placeOf(name).resolve({ mount, sheet });
}

/** Show the view `component.name` as soon as its script is here. @param {Mounted & { name: string }} component */
export async function mounted(component) {
  const { mount, sheet } = await placeOf(component.name).promise;
  const root = /** @type {ShadowRoot} */ (component.parentElement);
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  return mount(component);
}
