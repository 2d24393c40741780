import assert from "node:assert/strict";
import { test } from "node:test";

import { isTyping, stepOf } from "../../gptviz/components/presenter/presenter.js";

test("only the keys of a remote control ask for a step", () => {
  assert.deepEqual(["PageDown", "PageUp", "ArrowRight", "l", " "].map(stepOf), [1, -1, 0, 0, 0]);
});

test("a key in a field is typed, and nothing else", () => {
  const inside = { closest: (/** @type {string} */ selector) => (selector.includes("input") ? {} : null) };
  assert.equal(isTyping(/** @type {any} */ (inside)), true);
  assert.equal(isTyping(/** @type {any} */ ({ closest: () => null })), false);
  assert.equal(isTyping(null), false);
});
