// A payload as bytes: what `pack` of __init__.py makes, for a page that computes what its views show.

/** @typedef {Float64Array | Float32Array | Int32Array | Uint8Array} Numbers */

/** @type {Record<string, string>} */
const KINDS = { Float64Array: "float64", Float32Array: "float32", Int32Array: "int32", Uint8Array: "uint8" };

/** Numbers with their shape. @template {Numbers} T @param {T} numbers @param {number[]} shape @returns {T & { shape: number[] }} */
export const shaped = (numbers, ...shape) => Object.assign(numbers, { shape: shape.length ? shape : [numbers.length] });

/** A list as the bytes of its JSON. @param {unknown[]} list */
export const bytesOf = (list) => shaped(new TextEncoder().encode(JSON.stringify(list)));

/** @param {Record<string, unknown>} header @param {Record<string, Numbers & { shape: number[] }>} arrays */
export function pack(header, arrays) {
  const aligned = (/** @type {number} */ size) => Math.ceil(size / 8) * 8;
  let offset = 0;
  const places = Object.entries(arrays).map(([name, numbers]) => {
    const kind = KINDS[numbers.constructor.name];
    const place = { kind, shape: numbers.shape, offset };
    offset += aligned(numbers.byteLength);
    return /** @type {const} */ ([name, place]);
  });
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays: Object.fromEntries(places) }));
  const start = aligned(4 + text.length);
  const bytes = new Uint8Array(start + offset);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  for (const [name, place] of places) {
    const { buffer, byteOffset, byteLength } = arrays[name];
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), start + place.offset);
  }
  return bytes;
}
