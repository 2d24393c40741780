// How far the page scrolls when a box of the model map is opened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { distance } from "../../gptviz/components/model_map/scroll.js";

const seen = { top: 0, bottom: 720 };

test("what is in sight already does not move", () => {
  assert.equal(distance(seen, 300, 700), 0);
  assert.equal(distance(seen, -50, 700), 0);
});

test("the page scrolls until all is in sight, and no further", () => {
  assert.equal(distance(seen, 400, 800), 800 + 12 - 720);
});

test("what was clicked stays in sight though not all of what it opened fits", () => {
  assert.equal(distance(seen, 400, 2000), 400 - 12);
  assert.equal(distance(seen, -5, 2000), 0);
});
