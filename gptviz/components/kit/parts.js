// Parts of payloads: data that no longer change come in a separate message, which Streamlit sends to a browser once (part.js
// keeps it here), and payloads name it. All scripts of a page share what is kept.

import { pending, remembered, sharedMap } from "./remembered.js";

const kept = () => sharedMap("gptviz parts");

/** @param {string} name @returns {import("./remembered.js").Pending<Uint8Array> & { keepers: number }} */
const partOf = (name) => remembered(kept(), name, () => ({ ...pending(), keepers: 0 }));

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
  return Promise.all(names.map((name) => partOf(name).promise));
}
