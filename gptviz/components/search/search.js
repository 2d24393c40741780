// One search over all that has a name here: pages, lessons, words, models, heads and commands. The key "/" opens it, and so does
// the button. What is found are links, so that they open like any other, in a new window too.

import { copied } from "../kit/clipboard.js";
import { dialog } from "../kit/details.js";
import { isTyping, make, shape } from "../kit/elements.js";
import { DOWN, isAlone } from "../kit/keys.js";
import { View, view } from "../kit/view.js";

// The most that are shown of one kind.
const MOST = 3;
const HINT = "Pages, lessons, words, models, heads and commands. The arrow keys and Enter choose.";

/** @typedef {[kind: string, name: string, about: string, address: string, more: string]} Entry */
/** @typedef {{ state: Record<string, string>, around: Record<string, string>, parts: { entries: Entry[] }[] }} Payload */

/** A text as it is compared with another one. @param {string} text */
function plain(text) {
  return text.trim().toLowerCase().replace(/\s+/g, " ");
}

/**
 * The entries that have all words of a text, the best first: a name before the sentence about it, and that before further words.
 *
 * @param {Entry[]} entries
 * @param {string} text
 */
export function find(entries, text) {
  const asked = plain(text),
    words = asked.split(" ");
  if (!asked) return [];
  /** @param {Entry} entry */
  const rank = ([, name, about, , more]) => {
    const called = plain(name);
    if (called === asked) return 0;
    if (called.startsWith(asked)) return 1;
    const texts = [called, plain(`${name} ${about}`), plain(`${name} ${about} ${more}`)];
    const at = texts.findIndex((all) => words.every((word) => all.includes(word)));
    return at < 0 ? at : 2 + at;
  };
  const ranked = entries.map((entry) => ({ entry, rank: rank(entry) })).filter((one) => one.rank >= 0);
  return ranked.sort((a, b) => a.rank - b.rank).map((one) => one.entry);
}

/** The first few of each kind. @param {Entry[]} found */
export function few(found) {
  /** @type {Record<string, number>} */
  const counts = {};
  return found.filter(([kind]) => (counts[kind] = (counts[kind] ?? 0) + 1) <= MOST);
}

/**
 * The address of an entry, with what the reader has chosen so far.
 *
 * @param {string} address
 * @param {Pick<Payload, "state" | "around">} payload
 */
export function linkOf(address, { state, around }) {
  const [page, own] = address.split("?");
  const query = new URLSearchParams(own === undefined ? state : { ...around, ...Object.fromEntries(new URLSearchParams(own)) });
  if (query.get("lesson") !== around.lesson) query.delete("lesson_done"); // answers are those of the lesson that is open
  return `${page}?${query}`;
}

/** Show what a text finds. @param {Payload} payload @param {string} text @param {HTMLElement} list @param {HTMLElement} note */
function fill(payload, text, list, note) {
  const asked = text.trim(),
    found = find(payload.parts[0].entries, asked),
    shown = few(found);
  const rows = shown.map(([kind, name, about, address]) => {
    const said = make("strong", "", name),
      words = [said, make("span", "faint kind", kind), make("span", "faint about", about)];
    if (address) return make("a", "bare hit", words, { href: linkOf(address, payload), target: "_self" });
    const hit = make("button", "bare hit", words, { title: "Copy it" });
    hit.onclick = async () => (note.textContent = (await copied(said)) ? `Copied: ${name}` : "Selected: press Ctrl+C");
    return hit;
  });
  list.replaceChildren(...rows.map((hit) => make("li", "", [hit])));
  if (!asked) note.textContent = HINT;
  else if (!found.length) note.textContent = `Nothing is found for “${asked.slice(0, 60)}”.`;
  else note.textContent = `${shown.length < found.length ? `The best ${shown.length} of ` : ""}${found.length} found.`;
}

class Search extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {Payload | undefined} */
    this.payload = undefined;
    const shapes = [shape("path", { d: "M15 15L21 21" }), shape("circle", { cx: 10, cy: 10, r: 6.5 })];
    const glass = shape("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, ...shapes);
    const content = [glass, make("span", "", "Search"), make("kbd", "", "/", { "aria-hidden": "true" })];
    const about = "Find a page, a lesson, a word, a model, a head or a command. Key: /";
    const button = make("button", "field aligned search", content, { title: about, "aria-keyshortcuts": "/" });
    button.onclick = () => this.open();
    root.replaceChildren(button);
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      if (event.key !== "/" || !isAlone(event) || event.defaultPrevented || isTyping(event.composedPath()[0])) return;
      event.preventDefault(); // it would be typed into the box, or the browser would search the page
      this.open();
    };
    window.addEventListener("keydown", pressed, { signal: this.closing.signal });
  }

  /** @param {Payload} payload */
  show(payload) {
    this.payload = payload;
  }

  open() {
    const { payload, root } = this;
    if (!payload || root.querySelector("dialog")) return;
    const look = { type: "text", autofocus: "", "aria-label": "Search", autocomplete: "off" };
    const field = make("input", "field asked", undefined, look),
      list = make("ul", "found"),
      note = make("p", "note", HINT, { role: "status" });
    field.oninput = () => fill(payload, field.value, list, note);
    const box = dialog(root, "Search", field, list, note);
    box.classList.add("searching");
    box.addEventListener("keydown", (event) => {
      const stops = [field, .../** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(".hit"))],
        at = stops.findIndex((one) => one.matches(":focus"));
      if (event.key === "Enter" && at === 0 && !event.isComposing) stops[1]?.click();
      if (!(event.key in DOWN) || at < 0) return;
      event.preventDefault();
      stops[at + DOWN[event.key]]?.focus();
    });
  }
}

export default view(Search);
