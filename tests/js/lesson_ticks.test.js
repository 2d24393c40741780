// What a browser keeps of lessons: names only, whatever else stands there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { namesIn, styleOf } from "../../gptviz/components/page_helpers/lesson_ticks.js";

test("what was kept is read as names of lessons, and all else is left out", () => {
  assert.deepEqual(namesIn(JSON.stringify(["01-tokens", "my_own"])), ["01-tokens", "my_own"]);
  for (const odd of [null, "", "{", "3", '{"a": 1}', '[1, null, "x { } body", "", "-x"]']) assert.deepEqual(namesIn(odd), []);
});

test("each lesson that was done is ticked, and no other", () => {
  assert.equal(styleOf([]), "");
  assert.match(styleOf(["01-tokens", "b"]), /^\.lesson-tick\.done-01-tokens, \.lesson-tick\.done-b \{/);
});
