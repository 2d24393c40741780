// How tokens and numbers are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { brief, count, percent, shortened, spoken } from "../../gptviz/components/kit/text.js";

test("a number has three digits and a real minus", () => {
  const cases = {
    0: "0.00",
    1: "1.00",
    "-0.12345": "−0.123",
    123.456: "123",
    99999: "99999",
    0.000123456: "1.23 · 10⁻⁴",
    "-0.00000235": "−2.35 · 10⁻⁶",
    123456: "1.23 · 10⁵",
  };
  for (const [number, text] of Object.entries(cases)) assert.equal(brief(Number(number)), text);
  assert.deepEqual([Infinity, -Infinity, NaN].map(brief), ["∞", "−∞", "–"]);
});

test("a probability is a percentage", () => {
  assert.deepEqual([0, 1e-9, 0.001, 0.12345, 1].map(percent), ["0 %", "< 0.1 %", "0.100 %", "12.3 %", "100 %"]);
});

test("a count has thin separators", () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(count), ["0", "999", "1\u202f000", "1\u202f234\u202f567"]);
});

test("a text is shortened by characters, not by halves of pairs", () => {
  assert.equal(shortened("abc", 3), "abc");
  assert.equal(shortened("abcd", 3), "ab…");
  assert.equal(shortened("😀😀😀😀", 3), "😀😀…");
});

test("white space has a name aloud, also a name that objects inherit", () => {
  assert.deepEqual(["␣", "⏎", "⇥", "a"].map(spoken), ["space", "newline", "tab", "a"]);
  assert.equal(spoken("constructor"), "constructor");
});
