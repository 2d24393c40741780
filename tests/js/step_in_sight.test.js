// How far a page is scrolled until enough of a view is seen.

import assert from "node:assert/strict";
import { test } from "node:test";
import { wayDown } from "../../gptviz/components/page_helpers/step_in_sight.js";

const seen = (box, frame) => Math.min(box.bottom, frame.bottom) - Math.max(box.top, frame.top);

test("a view is moved up until it is seen whole or takes half of the window, no farther, and never down", () => {
  const frame = { top: 40, bottom: 840 };
  for (let top = -500; top < 3000; top += 37) {
    for (const height of [10, 150, 480, 2000]) {
      const box = { top, bottom: top + height };
      const way = wayDown(box, frame);
      const after = { top: top - way, bottom: box.bottom - way };
      const enough = Math.min(height, 400);
      assert.ok(way >= 0);
      if (way > 0) assert.equal(seen(after, frame), enough);
      else assert.ok(top + enough <= frame.bottom);
    }
  }
});
