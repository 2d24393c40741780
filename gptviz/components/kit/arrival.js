// The script and the style sheet of a view come in a separate message, which Streamlit sends once; that with the payload is
// small. Here the two meet, in whichever order they come.

/**
 * @typedef {import("./view.js").Mounted} Mounted
 * @typedef {(component: Mounted) => () => void} Mount
 * @typedef {{ mount: Mount, sheet: CSSStyleSheet }} Arrived
 * @typedef {{ promise: Promise<Arrived>, resolve: (arrived: Arrived) => void }} Place
 */

// All scripts of a page share it: each has a copy of this module.
const PLACES = Symbol.for("gptviz views");

/** @param {string} name @returns {Place} */
function placeOf(name) {
  const page = /** @type {Record<symbol, Map<string, Place> | undefined>} */ (/** @type {unknown} */ (globalThis));
  page[PLACES] ??= new Map();
  const places = page[PLACES];
  const found = places.get(name);
  if (found) return found;
  /** @type {(arrived: Arrived) => void} */
  let resolve = () => {};
  /** @type {Promise<Arrived>} */
  const promise = new Promise((done) => {
    resolve = done;
  });
  const place = { promise, resolve };
  places.set(name, place);
  return place;
}

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
