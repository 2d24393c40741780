// What a view reads of the bytes that came, and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unpack, widened } from "../../gptviz/components/kit/view.js";

/** Bytes as `pack` in gptviz/components/kit/__init__.py writes them. */
function packed(header, body) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + text.length) / 8) * 8;
  const bytes = new Uint8Array(start + body.byteLength);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  bytes.set(new Uint8Array(body.buffer), start);
  return bytes;
}

test("arrays are read wherever the message lies in its buffer", () => {
  const arrays = { a: { kind: "float32", shape: [2, 1], offset: 0 }, b: { kind: "float32", shape: [1], offset: 8 } };
  const bytes = packed({ name: "x", arrays }, new Float32Array([0.5, -2, 3]));
  for (const before of [0, 1, 7]) {
    const moved = new Uint8Array(before + bytes.length);
    moved.set(bytes, before);
    const header = unpack(moved.subarray(before));
    assert.equal(header.name, "x");
    assert.deepEqual([[...header.arrays.a], [...header.arrays.b]], [[0.5, -2], [3]]);
    assert.deepEqual(header.arrays.a.shape, [2, 1]);
  }
});

test("half precision keeps its values, the smallest and the odd ones too", () => {
  const bits = Uint16Array.from([0x0000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0xfc00, 0x7e00]);
  const expected = [0, 2 ** -24, 1023 * 2 ** -24, 2 ** -14, 1, -2, 65504, Infinity, -Infinity, NaN];
  assert.deepEqual([...widened(bits)], expected);
});
