// Pictures of figures: which parts of plotly's own layout stand in 3-D.

import assert from "node:assert/strict";
import { test } from "node:test";

import { scenesOf } from "../../gptviz/components/figure_tools/figure.js";

test("every scene that plotly has drawn is found, and nothing else", () => {
  const first = { container: {}, toImage: () => "first" },
    second = { container: {}, toImage: () => "second" };
  const layout = { scene: { _scene: first }, scene2: { _scene: second }, scene3: {}, scenery: { _scene: {} }, xaxis: {} };
  assert.deepEqual(scenesOf(/** @type {any} */ (layout)), [first, second]);
  assert.deepEqual(scenesOf({}), []);
});
