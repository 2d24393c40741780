// What the views made by hand share. Text of a model or a user is set by textContent alone.

const SVG = "http://www.w3.org/2000/svg";
const SPOKEN = { "␣": "space", "⏎": "newline", "⇥": "tab" };
// Rows of a table that are shown; the file has all.
const ROWS_SHOWN = 200;
const PICTURE_SCALE = 2;

/** A component's function for Streamlit: one `View(root)` per place on the page, which is told what to `show(payload)`, as
 *  `read` makes it of the bytes that came. `view.send(event, value)` triggers `on_<event>_change`; `close()`, where there is one,
 *  is called at the end. */
function view(View, read = unpack) {
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
function unpack(data) {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  for (const [name, { kind, shape, offset }] of Object.entries(header.arrays)) {
    const count = shape.reduce((product, size) => product * size, 1);
    const Kind = { float64: Float64Array, float32: Float32Array, float16: Uint16Array, int32: Int32Array, uint8: Uint8Array }[kind];
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
function widened(bits) {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let i = 0; i < 65536; i++) {
      const sign = i & 0x8000 ? -1 : 1, exponent = (i >> 10) & 31, fraction = i & 1023;
      halves[i] = sign * (exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15));
    }
  }
  const wide = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = halves[bits[i]];
  return wide;
}

/** An element with a class, a text and attributes; a button is no submit button. */
function make(tag, className = "", text = undefined, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (tag === "button") element.type = "button";
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** An element of a drawing; children are elements or text. */
function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Text and numbers

/** How a token is called aloud. */
function spoken(label) {
  return SPOKEN[label] ?? label;
}

/** A token as a chip: monospaced, kept apart from the direction of its neighbours. */
function chip(label, tag = "span") {
  const element = make(tag, "chip", label);
  element.classList.toggle("blank", label in SPOKEN);
  element.setAttribute("aria-label", spoken(label));
  return element;
}

/** At most `longest` characters of a text. */
function shortened(text, longest = 24) {
  const characters = [...text];
  return characters.length <= longest ? text : `${characters.slice(0, longest - 1).join("")}…`;
}

/** Three significant digits, with a real minus. */
function brief(number) {
  if (Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number < 0 ? "−∞" : "∞";
  const size = Math.abs(number);
  const text = size !== 0 && (size < 0.001 || size >= 100_000) ? number.toExponential(2) : size >= 100 ? number.toFixed(0) : number.toPrecision(3);
  return text.replaceAll("-", "−");
}

function percent(probability) {
  if (probability === 0) return "0 %";
  return probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toPrecision(3)} %`;
}

/** A count with thin separators. */
function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// Colour: the scales of gptviz/figures/theme.py

function rgb(colour) {
  const hex = colour.match(/^#(..)(..)(..)/);
  return hex ? hex.slice(1).map((pair) => parseInt(pair, 16)) : colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function isDark(element) {
  const [r, g, b] = rgb(background(element));
  return 0.3 * r + 0.6 * g + 0.1 * b < 128;
}

function background(element) {
  return getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "#FFFFFF";
}

function mixed(colour, ground, share) {
  return rgb(colour).map((c, i) => share * c + (1 - share) * rgb(ground)[i]);
}

/** A scale of 256 colours [256 · 3], drawn from stops [place 0 … 1, colour as red, green, blue]. */
function scale(stops) {
  const table = new Uint8ClampedArray(768);
  for (let i = 0; i < 256; i++) {
    const at = i / 255;
    const upper = Math.max(1, stops.findIndex(([place]) => place >= at));
    const [low, from] = stops[upper - 1], [high, to] = stops[upper];
    const share = (at - low) / (high - low);
    for (let c = 0; c < 3; c++) table[3 * i + c] = (1 - share) * from[c] + share * to[c];
  }
  return table;
}

/** The scale for 0 … 1 in a role's colour, from just off the page's background. */
function sequential(colour, element) {
  const ground = background(element);
  return scale([[0, mixed(colour, ground, 0.07)], [0.65, rgb(colour)], [1, mixed(colour, isDark(element) ? "#FFFFFF" : "#000000", 0.6)]]);
}

/** The scale for −1 … 1, zero being the page's background: orange below, blue above. */
function diverging(element) {
  const end = isDark(element) ? "#FFFFFF" : "#000000";
  return scale([
    [0, mixed(ROLES.key, end, 0.6)],
    [0.2, rgb(ROLES.key)],
    [0.5, rgb(background(element))],
    [0.8, rgb(ROLES.query)],
    [1, mixed(ROLES.query, end, 0.6)],
  ]);
}

/** The colour of `place` (0 … 1) on a scale, for CSS. */
function colourAt(table, place) {
  const i = 3 * Math.round(255 * Math.max(0, Math.min(1, place)));
  return `rgb(${table[i]} ${table[i + 1]} ${table[i + 2]})`;
}

/** Equal ratios as equal steps, down to 0.1 %. */
function logarithmic(probability) {
  return 1 + Math.log10(Math.max(probability, 0.001)) / 3;
}

/** Paint a heatmap, one pixel a cell, from `place(row, column)`: 0 … 1 on the scale, or NaN for a blank cell. */
function paint(canvas, rows, columns, place, table) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at += 4) {
      const value = place(row, column);
      if (Number.isNaN(value)) continue; // blank: see-through
      const i = 3 * Math.round(255 * Math.max(0, Math.min(1, value)));
      image.data[at] = table[i];
      image.data[at + 1] = table[i + 1];
      image.data[at + 2] = table[i + 2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

// The address of the page: what a view shows without the server is in it, so that a link reopens it

/** What the address says for `key`, null if nothing. */
function inAddress(key) {
  return new URLSearchParams(location.search).get(key);
}

/** Write values into the address; null takes a key out of it. No step back in the browser's history is made. */
function toAddress(values) {
  const address = new URL(location.href);
  for (const [key, value] of Object.entries(values)) {
    if (value === null) address.searchParams.delete(key);
    else address.searchParams.set(key, value);
  }
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

// Numbers, code, picture: what stands behind every view

/** Say something to who cannot see the view. */
function announce(root, text) {
  let line = root.querySelector(":scope > .aloud");
  if (!line) {
    line = make("div", "aloud", "", { "aria-live": "polite" });
    root.append(line);
  }
  if (line.textContent !== text) line.textContent = text;
}

/** Offer `blob` as a file. */
function save(blob, name) {
  const link = make("a", "", undefined, { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A table as CSV (RFC 4180). Numbers keep all their digits. */
function csv({ columns, rows }) {
  const field = (value) => (typeof value === "string" && /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value ?? ""));
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** A window above the page that Escape closes; it goes when it is closed. */
function dialog(root, title, ...content) {
  const window_ = make("dialog", "window", undefined, { "aria-label": title });
  const head = make("div", "row");
  const close = make("button", "tool", "Close");
  close.onclick = () => window_.close();
  head.append(make("strong", "", title), close);
  window_.append(head, ...content);
  window_.addEventListener("keydown", (event) => event.stopPropagation());
  window_.addEventListener("close", () => window_.remove());
  root.append(window_);
  window_.showModal();
  return window_;
}

/** The element of a drawing as a file that stands alone. */
function drawn(picture) {
  picture.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(picture);
}

/** A drawing as the pixels of a PNG. */
async function pixels(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn(picture))}`;
  await image.decode();
  const canvas = make("canvas");
  canvas.width = PICTURE_SCALE * Number(picture.getAttribute("width"));
  canvas.height = PICTURE_SCALE * Number(picture.getAttribute("height"));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** The buttons behind a view.
 *
 *  `name`: of the files. `numbers()`: {columns, rows} of what is shown. `code()`: the lines of gptviz that compute it.
 *  `picture()`: an <svg> element of its own, with width, height, title and scale, whose colours are written out. */
function tools(root, { name, numbers, code, picture }) {
  const row = make("div", "tools", undefined, { role: "group", "aria-label": "Numbers, code and picture" });
  const tool = (label, help, act) => {
    const button = make("button", "tool", label, { title: help });
    button.onclick = act;
    row.append(button);
  };
  tool("Numbers", "The numbers behind the view, as a table and a CSV file", () => {
    const table = numbers();
    const download = make("button", "tool", "Download CSV");
    download.onclick = () => save(new Blob([csv(table)], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
    const scroll = make("div", "scroll", undefined, { tabindex: "0" });
    scroll.append(tableOf(table));
    const more = table.rows.length > ROWS_SHOWN ? `The first ${ROWS_SHOWN} of ${count(table.rows.length)} rows; the file has all.` : `${count(table.rows.length)} rows`;
    dialog(root, "Numbers", scroll, make("p", "note", more), download);
  });
  tool("Code", "The lines of Python that compute the same numbers", () => {
    const text = code();
    const copy = make("button", "tool", "Copy");
    copy.onclick = async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    };
    const lines = make("pre", "code scroll", text, { tabindex: "0" });
    dialog(root, "Code", lines, copy);
  });
  tool("PNG", "The view as a picture of pixels", async () => save(await pixels(picture()), `${name}.png`));
  tool("SVG", "The view as a drawing that stays sharp", () => save(new Blob([drawn(picture())], { type: "image/svg+xml" }), `${name}.svg`));
  return row;
}

function tableOf({ columns, rows }) {
  const table = make("table");
  const line = (tag, values) => {
    const row = make("tr");
    for (const value of values) row.append(make(tag, typeof value === "number" ? "number" : "", typeof value === "number" && !Number.isInteger(value) ? brief(value) : String(value ?? "")));
    table.append(row);
  };
  line("th", columns);
  for (const row of rows.slice(0, ROWS_SHOWN)) line("td", row);
  return table;
}
