// The parts that all views are built from, as far as they need no page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "../../gptviz/components/kit/details.js";
import { isTyping } from "../../gptviz/components/kit/elements.js";
import { beside, under } from "../../gptviz/components/kit/floating.js";
import { breaksBetween } from "../../gptviz/components/kit/flow.js";
import { tinted } from "../../gptviz/components/kit/chips.js";

/** The words of a text, where lines may break between them. */
function words(...labels) {
  const found = [];
  labels.forEach((label, i) => {
    if (i === 0 || breaksBetween(labels[i - 1], label)) found.push("");
    found[found.length - 1] += label;
  });
  return found;
}

test("lines break between words and after a newline, and white space stays with the word before it", () => {
  assert.deepEqual(words("T", "o", "␣", "b", "e", ",", "⏎", "o", "r"), ["To␣", "be,⏎", "or"]);
  assert.deepEqual(words("To", "␣be", "␣or", "⏎", "⏎", "not"), ["To", "␣be", "␣or⏎", "⏎", "not"]);
  assert.deepEqual(words("a", "␣", "␣", "␣", "b"), ["a␣␣␣", "b"]);
  assert.deepEqual(words("a,␣", "b⇥", "⇥", "c"), ["a,␣", "b⇥⇥", "c"]);
  assert.deepEqual(words("con", "struct", "or"), ["constructor"]);
});

const PAGE = { width: 1000, height: 600 };
const CARD = { width: 200, height: 100 };
const box = (left, top) => ({ left, right: left + 20, top, bottom: top + 20 });

test("a card under a box touches it, and turns over where there is no room", () => {
  assert.deepEqual(under(box(300, 100), CARD, PAGE), { left: 300, top: 120 });
  assert.deepEqual(under(box(300, 550), CARD, PAGE), { left: 300, top: 450 });
  assert.deepEqual(under(box(950, 100), CARD, PAGE), { left: 792, top: 120 });
  assert.deepEqual(under(box(-50, 100), CARD, PAGE), { left: 8, top: 120 });
});

test("a card beside a box leaves it in sight, on either side", () => {
  assert.deepEqual(beside(box(300, 100), CARD, PAGE), { left: 328, top: 60 });
  assert.deepEqual(beside(box(300, 100), CARD, PAGE, { edge: 500 }), { left: 508, top: 60 });
  assert.deepEqual(beside(box(900, 590), CARD, PAGE), { left: 692, top: 492 });
});

test("a card is on the page wherever its box is", () => {
  for (const where of [under, beside]) {
    for (let left = -100; left < 1100; left += 50) {
      for (let top = -100; top < 700; top += 50) {
        const at = where(box(left, top), CARD, PAGE);
        assert.ok(at.left >= 0 && at.left + CARD.width <= PAGE.width);
        assert.ok(at.top >= 0 && at.top + CARD.height <= PAGE.height);
      }
    }
  }
});

test("a tint lies between its ends", () => {
  assert.deepEqual([0, 0.5, 1].map(tinted), ["6%", "30%", "54%"]);
});

test("a table becomes CSV that others read", () => {
  const text = csv({
    columns: ["token", "a,b"],
    rows: [
      ['say "hi"', 0.1],
      ["two\nlines", null],
      ["", 1e-7],
    ],
  });
  assert.equal(text, '\ufefftoken,"a,b"\r\n"say ""hi""",0.1\r\n"two\nlines",\r\n,1e-7\r\n');
});

test("no cell of text is a formula to a spreadsheet, and numbers stay numbers", () => {
  const rows = [
    ["=1+1", -1],
    ["-", "+1"],
    ["@a", 0],
    ["\t=", NaN],
    ["'=1", null],
    ["it's = 1", "a"],
  ];
  const text = csv({ columns: ["=a", "b"], rows });
  assert.equal(text, "\ufeff'=a,b\r\n'=1+1,-1\r\n'-,'+1\r\n'@a,0\r\n'\t=,NaN\r\n''=1,\r\nit's = 1,a\r\n");
});

test("a key in a field is typed, and nothing else", () => {
  const inside = { closest: (/** @type {string} */ selector) => (selector.includes("input") ? {} : null) };
  assert.equal(isTyping(/** @type {any} */ (inside)), true);
  assert.equal(isTyping(/** @type {any} */ ({ closest: () => null })), false);
  assert.equal(isTyping(null), false);
});
