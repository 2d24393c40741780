// What the search finds, in which order, and where it leads.

import assert from "node:assert/strict";
import { test } from "node:test";

import { few, find, linkOf } from "../../gptviz/components/search/search.js";

/** @type {(name: string, about?: string, more?: string, kind?: string) => [string, string, string, string, string]} */
const entry = (name, about = "", more = "", kind = "Page") => [kind, name, about, "./", more];

test("a name comes before the sentence about it, and that before further words", () => {
  const all = [entry("x", "", "lens"), entry("x", "a lens"), entry("a lens"), entry("Lens grid"), entry("Lens"), entry("other")];
  assert.deepEqual(find(all, " lens "), [all[4], all[3], all[2], all[1], all[0]]);
});

test("all words must be there, in any order and any case", () => {
  const all = [entry("Heads", "what each does"), entry("Heads"), entry("what")];
  assert.deepEqual(find(all, "WHAT  heads"), [all[0]]);
  assert.deepEqual(find(all, "  "), []);
});

test("few of each kind are shown, the best", () => {
  const all = [...Array(9).keys()].map((i) => entry(`a${i}`, "", "", i % 2 ? "Page" : "Word"));
  assert.deepEqual(
    few(all).map(([, name]) => name),
    ["a0", "a1", "a2", "a3", "a4", "a5"],
  );
});

test("a page goes on with what the reader chose, a model of its own does not", () => {
  const payload = { state: { model: "bpe", prompt: "a&b", lesson: "one", lesson_done: "1.1r" }, around: {} };
  payload.around = { lesson: "one", lesson_done: "1.1r" };
  assert.equal(linkOf("./lens", payload), "./lens?model=bpe&prompt=a%26b&lesson=one&lesson_done=1.1r");
  assert.equal(linkOf("./?model=x", payload), "./?lesson=one&lesson_done=1.1r&model=x");
  assert.equal(linkOf("./?lesson=two", payload), "./?lesson=two", "answers belong to their lesson");
});
