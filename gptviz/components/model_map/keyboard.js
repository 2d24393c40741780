// Walking over the map with the keyboard.

import { ACROSS, along, DOWN } from "../kit/keys.js";

/**
 * Where a key leads, null if nowhere.
 *
 * @param {string} key
 * @param {string} path where the focus is
 * @param {string[]} order all places in the order of the stream
 */
export function walk(key, path, order) {
  const to = along(key, order.indexOf(path), order.length, path.startsWith("guess ") ? { ...ACROSS, ...DOWN } : ACROSS);
  return to === null ? null : order[to];
}
