// The address of the page: what a view shows without the server is in it, so that a link reopens it.

// The query of a page that is a file and has no address: set by gptviz/takehome/page_file.js.
const INSTEAD = Symbol.for("gptviz address");

/** The value of `key` in the address, null if there is none. @param {string} key */
export function inAddress(key) {
  return wholeQuery().get(key);
}

/** The query of the address, with the values that are still to be written or to be put back there. */
export function wholeQuery() {
  const instead = /** @type {Record<symbol, string | undefined>} */ (/** @type {unknown} */ (globalThis))[INSTEAD];
  const query = new URLSearchParams(instead ?? location.search);
  for (const part of [written, unwritten]) setAll(query, valuesOf(part));
  return query;
}

/** @param {URLSearchParams} query @param {Record<string, unknown>} values null takes a key out of it */
function setAll(query, values) {
  for (const [key, value] of Object.entries(values)) {
    if (value === null) query.delete(key);
    else query.set(key, String(value));
  }
}

// Browsers refuse an address that changes with every move of a slider (Safari: more than 100 times in 30 seconds): it is written
// at once, then at most so often, in milliseconds.
const ADDRESS_PAUSE = 320;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let lastWritten = -Infinity;
/** @typedef {{ page: string, values: Record<string, unknown> }} Part of the address of a page */
/** @type {Part} */
const unwritten = { page: "", values: {} };
// The values in the address by now. The server does not know of it: when it writes the address itself, as for another prompt, it
// writes what the address was when the page was opened, and this is put back.
/** @type {Part} */
const written = { page: "", values: {} };
/** @type {any} */ (globalThis).navigation?.addEventListener("currententrychange", putBack);

/** The values of a part; those of another page are forgotten. @param {Part} part */
function valuesOf(part) {
  if (part.page !== location.pathname) Object.assign(part, { page: location.pathname, values: {} });
  return part.values;
}

/**
 * Write values into the address; null takes a key out of it. No step back in the browser's history is made.
 *
 * @param {Record<string, unknown>} values
 */
export function toAddress(values) {
  Object.assign(valuesOf(unwritten), values);
  const due = lastWritten + ADDRESS_PAUSE - performance.now();
  if (due <= 0) writeAddress();
  else timer ??= setTimeout(writeAddress, due);
  // A click may lead to another page: it finds the address written.
  if (timer !== undefined) window.addEventListener("click", writeAddress, { capture: true, once: true });
}

function writeAddress() {
  clearTimeout(timer);
  timer = undefined;
  window.removeEventListener("click", writeAddress, { capture: true });
  const values = valuesOf(unwritten);
  if (!Object.keys(values).length) return; // by now the address may be that of another page
  const address = new URL(location.href);
  setAll(address.searchParams, values);
  Object.assign(valuesOf(written), values);
  unwritten.values = {};
  lastWritten = performance.now();
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

function putBack() {
  const now = new URLSearchParams(location.search),
    unsaid = valuesOf(unwritten);
  /** @param {[string, unknown]} entry */
  const isLost = ([key, value]) => !(key in unsaid) && now.get(key) !== (value === null ? null : String(value));
  const lost = Object.entries(valuesOf(written)).filter(isLost);
  if (lost.length) toAddress(Object.fromEntries(lost));
}
