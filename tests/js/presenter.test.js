import assert from "node:assert/strict";
import { test } from "node:test";

import { stepOf } from "../../gptviz/components/page_helpers/presenter.js";

test("only the keys of a remote control ask for a step", () => {
  assert.deepEqual(["PageDown", "PageUp", "ArrowRight", "l", " "].map(stepOf), [1, -1, 0, 0, 0]);
});
