// Details: the numbers, the code and the picture of a view.

import { copied } from "./clipboard.js";
import { button, make } from "./elements.js";
import { more } from "./more.js";
import { svgFile } from "./svg.js";
import { brief, count } from "./text.js";

// Rows of a table that are shown; the file has all.
const ROWS_SHOWN = 200;
const PICTURE_SCALE = 2;

/** @typedef {{ columns: string[], rows: (string | number | null | undefined)[][] }} Table */

/** Say something to those who cannot see the view. @param {HTMLElement} root @param {string} text */
export function announce(root, text) {
  const line = root.querySelector(":scope > .aloud") ?? make("div", "aloud", "", { "aria-live": "polite" });
  if (!line.parentElement) root.append(line);
  if (line.textContent !== text) line.textContent = text;
}

/** Offer `blob` as a file. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = make("a", "", undefined, { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * A table as CSV (RFC 4180), with the byte order mark that Excel needs to show the right letters. Numbers keep all their digits. A
 * text that a spreadsheet would take for a formula has an apostrophe before it, as in gptviz/text/datasets/tables.py.
 *
 * @param {Table} table
 */
export function csv({ columns, rows }) {
  /** @param {unknown} value */
  const field = (value) => {
    if (typeof value !== "string") return String(value ?? "");
    const text = /^[\s']*[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `\ufeff${[columns, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("")}`;
}

/**
 * Open a window above the page, which Escape closes; it goes when it is closed.
 *
 * @param {HTMLElement} root
 * @param {string} title
 * @param {HTMLElement[]} content
 */
export function dialog(root, title, ...content) {
  const opened = make("dialog", "window", undefined, { "aria-label": title });
  opened.append(make("div", "row", [make("strong", "", title), button("Close", () => opened.close())]), ...content);
  opened.addEventListener("keydown", (event) => event.stopPropagation());
  opened.addEventListener("close", () => opened.remove());
  root.append(opened);
  opened.showModal();
  return opened;
}

/**
 * A drawing as the pixels of a PNG.
 *
 * @param {SVGElement} picture
 * @returns {Promise<Blob>} rejected where the browser cannot do it, as when the picture is too large for it
 */
async function pixels(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgFile(picture))}`;
  await image.decode();
  const canvas = make("canvas");
  canvas.width = PICTURE_SCALE * Number(picture.getAttribute("width"));
  canvas.height = PICTURE_SCALE * Number(picture.getAttribute("height"));
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the canvas has no pixels"))), "image/png");
  });
}

/**
 * The details of a view, behind one button.
 *
 * @param {HTMLElement} root
 * @param {object} details
 * @param {string} details.name of the files
 * @param {() => Table} details.numbers what is shown
 * @param {() => string} details.code the lines of gptviz that compute it
 * @param {() => SVGElement} details.picture a separate drawing, with width, height, title and scale, whose colours are written out
 * @param {() => object} [details.file] all that is shown, for a file that the page opens again
 */
export function tools(root, { name, numbers, code, picture, file }) {
  const showNumbers = () => {
    const table = numbers();
    const write = () => save(new Blob([csv(table)], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
    const scroll = make("div", "scroll", [tableOf(table, "The numbers of the view")], { tabindex: "0" });
    const rows = count(table.rows.length);
    const length = table.rows.length > ROWS_SHOWN ? `The first ${ROWS_SHOWN} of ${rows} rows; the file has all.` : `${rows} rows`;
    dialog(root, "Numbers", scroll, make("p", "note", length), button("Download CSV", write));
  };
  const showCode = () => {
    const lines = make("pre", "code scroll", code(), { tabindex: "0" });
    const write = async () => (copy.textContent = (await copied(lines)) ? "Copied" : "Selected: press Ctrl+C");
    const copy = button("Copy", write, { "aria-live": "polite" });
    dialog(root, "Code", lines, copy);
  };
  const items = [
    button("Numbers", showNumbers, { title: "The numbers of the view, as a table and a CSV file" }),
    button("Code", showCode, { title: "The lines of Python that compute the same numbers" }),
    ...pictureItems(root, { name, picture }),
  ];
  if (file) {
    const write = () => save(new Blob([JSON.stringify(file(), null, 1)], { type: "application/json" }), `${name}.json`);
    items.push(button("Save", write, { title: "All that is shown, as a JSON file that this page opens again" }));
  }
  // A phone and a frame of another site may not allow it.
  if (document.fullscreenEnabled)
    items.push(
      button("Full screen", () => fillScreen(root), { title: "The view alone on the whole screen; Escape brings the page back" }),
    );
  return more(items);
}

/** Show a view on the whole screen, or on the page again. @param {HTMLElement} root */
function fillScreen(root) {
  if (document.fullscreenElement) document.exitFullscreen();
  else root.requestFullscreen().catch(() => announce(root, "This browser does not allow it"));
}

/**
 * The items of a menu for the picture of a view.
 *
 * @param {HTMLElement} root
 * @param {object} details
 * @param {string} details.name of the files
 * @param {() => SVGElement} details.picture see `tools`
 * @param {boolean} [details.isSharp] false where the view is made of pixels, so that it has no SVG
 */
export function pictureItems(root, { name, picture, isSharp = true }) {
  const why = isSharp ? "" : "; it is drawn in pixels, so there is no SVG of it";
  const savePng = async () => {
    try {
      save(await pixels(picture()), `${name}.png`);
    } catch {
      const said = `This browser could not make a PNG of it.${isSharp ? " SVG gives the same picture." : ""}`;
      dialog(root, "PNG", make("p", "note", said, { role: "alert" }));
    }
  };
  const png = button("PNG", savePng, { title: `The view as a picture made of pixels${why}` });
  if (!isSharp) return [png];
  const saveSvg = () => save(new Blob([svgFile(picture())], { type: "image/svg+xml" }), `${name}.svg`);
  return [png, button("SVG", saveSvg, { title: "The view as a drawing that stays sharp" })];
}

/** The first rows of a table as an element; the caption is read aloud. @param {Table} table @param {string} caption */
export function tableOf({ columns, rows }, caption) {
  const names = columns.map((column) => make("th", "", column, { scope: "col" }));
  const cells = (/** @type {Table["rows"][number]} */ row) =>
    row.map((value) => {
      if (typeof value !== "number") return make("td", "", String(value ?? ""));
      return make("td", "number", Number.isInteger(value) ? String(value) : brief(value));
    });
  const lines = rows.slice(0, ROWS_SHOWN).map((row) => make("tr", "", cells(row)));
  const parts = [make("thead", "", [make("tr", "", names)]), make("tbody", "", lines)];
  return make("table", "", [make("caption", "aloud", caption), ...parts]);
}
