// How a view is shown, and how the payload it is shown from is read.

/** A component's function for Streamlit: one `View(root)` per place on the page, which is told what to `show(payload)`, as
 *  `read` makes it of the bytes that came. `view.send(event, value)` triggers `on_<event>_change`; `close()`, where there is one,
 *  is called at the end. */
export function view(View, read = unpack) {
  const views = new WeakMap();
  return ({ data, parentElement, setTriggerValue }) => {
    let shown = views.get(parentElement);
    if (!shown) {
      shown = new View(parentElement.querySelector(".root"));
      views.set(parentElement, shown);
    }
    shown.send = setTriggerValue;
    shown.show(read(data));
    return () => {
      shown.close?.();
      views.delete(parentElement);
    };
  };
}

/** The header of a payload, with `arrays`: name → typed array, its `shape` beside the numbers. */
export function unpack(data) {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  for (const [name, { kind, shape, offset }] of Object.entries(header.arrays)) {
    const count = shape.reduce((product, size) => product * size, 1);
    const Kind = { float64: Float64Array, float32: Float32Array, float16: Uint16Array, int32: Int32Array, uint8: Uint8Array }[
      kind
    ];
    const from = data.byteOffset + start + offset;
    let numbers = new Kind(data.buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
    if (kind === "float16") numbers = widened(numbers);
    numbers.shape = shape;
    header.arrays[name] = numbers;
  }
  return header;
}

let halves = null;

/** Numbers of half precision, given as their bits, in single precision. */
export function widened(bits) {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let i = 0; i < 65536; i++) {
      const sign = i & 0x8000 ? -1 : 1,
        exponent = (i >> 10) & 31,
        fraction = i & 1023;
      halves[i] =
        sign *
        (exponent === 0
          ? fraction * 2 ** -24
          : exponent === 31
            ? fraction
              ? NaN
              : Infinity
            : (1 + fraction / 1024) * 2 ** (exponent - 15));
    }
  }
  const wide = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = halves[bits[i]];
  return wide;
}
