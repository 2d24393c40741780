// Details: the numbers, the code and the picture of a view.

import { SVG, make } from "./elements.js";
import { brief, count } from "./text.js";

// Rows of a table that are shown; the file has all.
const ROWS_SHOWN = 200;
const PICTURE_SCALE = 2;

/** Say something to who cannot see the view. */
export function announce(root, text) {
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
export function csv({ columns, rows }) {
  const field = (value) =>
    typeof value === "string" && /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value ?? "");
  return [columns, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
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
export function tools(root, { name, numbers, code, picture }) {
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
    const more =
      table.rows.length > ROWS_SHOWN
        ? `The first ${ROWS_SHOWN} of ${count(table.rows.length)} rows; the file has all.`
        : `${count(table.rows.length)} rows`;
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
  tool("SVG", "The view as a drawing that stays sharp", () =>
    save(new Blob([drawn(picture())], { type: "image/svg+xml" }), `${name}.svg`),
  );
  return row;
}

export function tableOf({ columns, rows }) {
  const table = make("table");
  const line = (tag, values) => {
    const row = make("tr");
    for (const value of values)
      row.append(
        make(
          tag,
          typeof value === "number" ? "number" : "",
          typeof value === "number" && !Number.isInteger(value) ? brief(value) : String(value ?? ""),
        ),
      );
    table.append(row);
  };
  line("th", columns);
  for (const row of rows.slice(0, ROWS_SHOWN)) line("td", row);
  return table;
}
