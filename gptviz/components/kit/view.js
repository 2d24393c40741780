// How a view is shown, and how the payload it is shown from is read.

import { arrived } from "./parts.js";
import { remembered } from "./remembered.js";

/**
 * The arguments that Streamlit gives a component each time its data or its place changes.
 *
 * @typedef {object} Mounted
 * @property {Uint8Array} data
 * @property {ParentNode} parentElement
 * @property {(event: string, value: unknown) => void} setTriggerValue
 */

/** A view: built once for its place on the page, then told what to `show`. */
export class View {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** Triggers `on_<event>_change`; set from outside. @type {(event: string, value: unknown) => void} */
    this.send = () => {};
    this.closing = new AbortController(); // ends what the view does beyond its own elements
  }

  /** Act when a part of the view has another size. @param {() => void} act @param {Element[]} parts */
  whenResized(act, ...parts) {
    const observer = new ResizeObserver(act);
    for (const part of parts) observer.observe(part);
    this.closing.signal.addEventListener("abort", () => observer.disconnect());
  }

  /** Called at the end. */
  close() {
    this.closing.abort();
  }
}

/**
 * A component's function for Streamlit, from the class of its view. Bytes that come again are not read again. A payload that names
 * parts, which it then has as `parts`, is shown at once if they were sent inside of it, else when all of them are here, unless
 * another one has come by then.
 *
 * @template Payload
 * @param {new (root: HTMLElement) => View & { show: (payload: Payload) => void }} Shown
 */
export function view(Shown) {
  /** @type {WeakMap<ParentNode, { view: InstanceType<typeof Shown>, data: Uint8Array, payload: Payload }>} */
  const places = new WeakMap();
  return (/** @type {Mounted} */ { data, parentElement, setTriggerValue }) => {
    const before = places.get(parentElement);
    const payload = before && areEqual(data, before.data) ? before.payload : /** @type {any} */ (unpack(data));
    const shown = before?.view ?? new Shown(/** @type {HTMLElement} */ (parentElement.querySelector(".root")));
    const place = { view: shown, data, payload };
    places.set(parentElement, place);
    shown.send = setTriggerValue;
    const act = () => places.get(parentElement) === place && shown.show(payload);
    /** @type {string[] | undefined} */
    const names = payload?.part_names;
    /** @param {Uint8Array[]} all */
    const join = (all) => {
      payload.parts = all.map(opened);
      act();
    };
    if (!names || payload.parts) act();
    else if (names.every((name) => payload.arrays[name])) join(names.map((name) => payload.arrays[name]));
    else arrived(names).then(join);
    return () => {
      shown.close();
      places.delete(parentElement);
    };
  };
}

/** @type {WeakMap<Uint8Array, Record<string, any>>} */
const unpacked = new WeakMap();

/** A part, unpacked only once. @param {Uint8Array} bytes */
const opened = (bytes) => remembered(unpacked, bytes, () => unpack(bytes));

/** @param {Uint8Array} a @param {Uint8Array} b */
function areEqual(a, b) {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

const NUMBERS = {
  float64: Float64Array,
  float32: Float32Array,
  float16: Uint16Array,
  int32: Int32Array,
  uint8: Uint8Array,
};

/** @typedef {(Float64Array | Float32Array | Int32Array | Uint8Array) & { shape: number[] }} Numbers */

/**
 * The header of a payload, with `arrays`: name → typed array, its `shape` along with the numbers.
 *
 * @param {Uint8Array} data
 * @returns {Record<string, any> & { arrays: Record<string, Numbers> }}
 */
export function unpack(data) {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  for (const [name, layout] of Object.entries(header.arrays)) {
    const { kind, shape, offset } = /** @type {{ kind: keyof typeof NUMBERS, shape: number[], offset: number }} */ (layout);
    const count = shape.reduce((product, size) => product * size, 1);
    const from = data.byteOffset + start + offset;
    const bytes = /** @type {ArrayBuffer} */ (data.buffer.slice(from, from + count * NUMBERS[kind].BYTES_PER_ELEMENT));
    const numbers = kind === "float16" ? widened(new Uint16Array(bytes)) : new NUMBERS[kind](bytes);
    header.arrays[name] = Object.assign(numbers, { shape });
  }
  return header;
}

/** @type {Float32Array | null} */
let halves = null;

/** Numbers of half precision, given as their bits, in single precision. @param {Uint16Array} bits */
export function widened(bits) {
  halves ??= Float32Array.from({ length: 65536 }, (_, half) => {
    const sign = half & 0x8000 ? -1 : 1,
      exponent = (half >> 10) & 31,
      fraction = half & 1023;
    if (exponent === 31) return sign * (fraction ? NaN : Infinity);
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
  });
  const wide = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = halves[bits[i]];
  return wide;
}
