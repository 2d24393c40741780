// What is made once and kept.

/**
 * The value that a map has for a key; made first where it has none.
 *
 * @template Key, Value
 * @param {{ has(key: Key): boolean, get(key: Key): Value | undefined, set(key: Key, value: Value): unknown }} map
 * @param {Key} key
 * @param {() => Value} make
 * @returns {Value}
 */
export function remembered(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return /** @type {Value} */ (map.get(key));
}

/** A map that all scripts of a page share: each has a copy of this module. @param {string} name @returns {Map<string, any>} */
export function sharedMap(name) {
  const page = /** @type {Record<symbol, Map<string, any> | undefined>} */ (/** @type {unknown} */ (globalThis));
  return (page[Symbol.for(name)] ??= new Map());
}

/** @template Value @typedef {{ promise: Promise<Value>, resolve: (value: Value) => void }} Pending a promise, and what fulfils it */

/** @template Value @returns {Pending<Value>} */
export function pending() {
  /** @type {(value: Value) => void} */
  let resolve = () => {};
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
