// Parts of payloads: data that no longer change come in a separate message, which Streamlit sends to a browser once (part.js
// keeps it here), and payloads name it. All scripts of a page share what is kept.

/** @typedef {{ bytes: Promise<Uint8Array>, resolve: (bytes: Uint8Array) => void, keepers: number }} Part */

const PARTS = Symbol.for("gptviz parts");

/** @returns {Map<string, Part>} */
function kept() {
  const page = /** @type {Record<symbol, Map<string, Part> | undefined>} */ (/** @type {unknown} */ (globalThis));
  page[PARTS] ??= new Map();
  return page[PARTS];
}

/** @param {string} name @returns {Part} */
function partOf(name) {
  const found = kept().get(name);
  if (found) return found;
  /** @type {Part["resolve"]} */
  let resolve = () => {};
  /** @type {Part["bytes"]} */
  const bytes = new Promise((done) => {
    resolve = done;
  });
  const part = { bytes, resolve, keepers: 0 };
  kept().set(name, part);
  return part;
}

/**
 * Keep a part until what is returned is called; if several keep the same one, until the last of them lets go.
 *
 * @param {string} name
 * @param {Uint8Array} bytes
 */
export function keep(name, bytes) {
  const part = partOf(name);
  part.keepers++;
  part.resolve(bytes);
  return () => {
    if (--part.keepers === 0) kept().delete(name);
  };
}

/** The bytes of these parts, once all of them are here. @param {string[]} names */
export function arrived(names) {
  return Promise.all(names.map((name) => partOf(name).bytes));
}
