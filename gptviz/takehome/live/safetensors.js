// Files in the format safetensors: the length of a header, the header in JSON, and the numbers of all tensors.

import { widened } from "../../components/kit/view.js";

/** @typedef {import("./parts.js").Tensor} Tensor */

const LONGEST_HEADER = 2 ** 20; // bytes
/** The bytes of a number, and how they are read, by type. @type {Record<string, { bytes: number, read: (bytes: ArrayBuffer) => Float32Array }>} */
const TYPES = {
  F16: { bytes: 2, read: (bytes) => widened(new Uint16Array(bytes)) },
  BF16: { bytes: 2, read: (bytes) => new Float32Array(Uint32Array.from(new Uint16Array(bytes), (half) => half << 16).buffer) },
  F32: { bytes: 4, read: (bytes) => new Float32Array(bytes) },
  F64: { bytes: 8, read: (bytes) => Float32Array.from(new Float64Array(bytes)) },
};

/** A tensor with this shape. @param {Float32Array} numbers @param {number[]} shape @returns {Tensor} */
export const shapedAs = (numbers, shape) => Object.assign(numbers, { shape });

/** How many numbers a tensor of this shape has. @param {number[]} shape */
export const sizeOf = (shape) => shape.reduce((size, one) => size * one, 1);

/**
 * The tensors of a file, which has those of `shapes` and no others, of finite numbers. An Error names what is wrong.
 *
 * @param {Uint8Array} file @param {Record<string, number[]>} shapes by name @param {string} [called] the name of the file
 * @returns {Record<string, Tensor>}
 */
export function tensorsIn(file, shapes, called = "model.safetensors") {
  const damaged = (/** @type {string} */ why) => new Error(`${called} is damaged or cut short (${why}): copy it again`);
  const length = file.length < 8 ? NaN : Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  if (!(length <= Math.min(LONGEST_HEADER, file.length - 8))) throw damaged("its header is longer than it may be");
  /** @type {[string, any][]} */
  let entries;
  try {
    entries = Object.entries(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(file.subarray(8, 8 + length))));
  } catch {
    throw damaged("its header is no JSON");
  }
  const found = new Map(entries.filter(([name]) => name !== "__metadata__"));
  const strange = [...found.keys()].find((name) => !Object.hasOwn(shapes, name));
  if (strange !== undefined) throw new Error(`${called} has ${strange.slice(0, 80)}, which a model of this config.json has not`);
  let used = 0;
  const tensors = Object.entries(shapes).map(([name, shape]) => {
    const { dtype, shape: stored, data_offsets } = found.get(name) ?? {};
    if (JSON.stringify(stored) !== JSON.stringify(shape)) {
      const has = Array.isArray(stored) ? `(${stored.slice(0, 4).join(", ")})` : "absent";
      throw new Error(
        `config.json describes ${name} (${shape.join(", ")}); ${called} has it ${has}: they are not from one model`,
      );
    }
    const type = Object.hasOwn(TYPES, dtype) ? TYPES[dtype] : undefined;
    if (!type)
      throw new Error(`${called} stores ${name} as ${String(dtype).slice(0, 20)}; read are ${Object.keys(TYPES).join(", ")}`);
    const [start, end] = Array.isArray(data_offsets) ? data_offsets : [];
    const isThere = Number.isInteger(start) && start >= 0 && end - start === sizeOf(shape) * type.bytes;
    if (!isThere || 8 + length + end > file.length) throw damaged(`${name} is not where its header says`);
    used += end - start;
    const numbers = type.read(file.slice(8 + length + start, 8 + length + end).buffer);
    if (!numbers.every(Number.isFinite))
      throw new Error(`${called}: ${name} holds values that are not numbers: copy the model again`);
    return [name, shapedAs(numbers, shape)];
  });
  if (used !== file.length - 8 - length) throw damaged("its tensors do not fill it");
  return Object.fromEntries(tensors);
}

/** A file with these tensors, in float32. @param {Record<string, Tensor>} tensors */
export function safetensors(tensors) {
  let end = 0;
  const header = Object.entries(tensors).map(([name, { shape, byteLength }]) => {
    const start = end;
    end += byteLength;
    return [name, { dtype: "F32", shape, data_offsets: [start, end] }];
  });
  const text = JSON.stringify(Object.fromEntries(header)),
    bytes = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8)), // names are ASCII
    file = new Uint8Array(8 + bytes.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(bytes.length), true);
  file.set(bytes, 8);
  let at = 8 + bytes.length;
  for (const { buffer, byteOffset, byteLength } of Object.values(tensors)) {
    file.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return file;
}
