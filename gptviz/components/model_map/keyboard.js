// Walking over the map with the keyboard.

/**
 * Where a key leads, null if nowhere.
 *
 * @param {string} key
 * @param {string} path where the focus is
 * @param {string[]} order all places in the order of the stream
 */
export function walk(key, path, order) {
  const here = order.indexOf(path),
    last = order.length - 1;
  if (key === "Home") return order[0];
  if (key === "End") return order[last];
  const isGuess = path.startsWith("guess ");
  const step = { ArrowRight: 1, ArrowLeft: -1, ...(isGuess ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[key];
  return step === undefined ? null : order[Math.max(0, Math.min(last, here + step))];
}
