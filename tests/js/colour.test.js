// Colours and their scales.

import assert from "node:assert/strict";
import { test } from "node:test";
import { colourAt, logarithmic, mixed, rgb, scale } from "../../gptviz/components/kit/colour.js";

test("a colour is read in each of its forms", () => {
  for (const form of ["#0077BB", "rgb(0, 119, 187)", "rgb(0 119 187 / 50%)"]) assert.deepEqual(rgb(form), [0, 119, 187]);
});

test("a mixture lies between its colours", () => {
  assert.deepEqual(mixed("#FFFFFF", "#000000", 0), [0, 0, 0]);
  assert.deepEqual(mixed("#FFFFFF", "#000000", 1), [255, 255, 255]);
  assert.deepEqual(mixed("#640000", "#006400", 0.25), [25, 75, 0]);
});

test("a scale goes straight from stop to stop and ends at its ends", () => {
  const table = scale([
    [0, [0, 0, 0]],
    [0.2, [51, 0, 0]],
    [1, [51, 255, 0]],
  ]);
  const at = (i) => [...table.slice(3 * i, 3 * i + 3)];
  assert.deepEqual(
    [at(0), at(51), at(255)],
    [
      [0, 0, 0],
      [51, 0, 0],
      [51, 255, 0],
    ],
  );
  for (let i = 0; i <= 51; i++) assert.deepEqual(at(i), [i, 0, 0]);
});

test("beyond a scale is its end", () => {
  const table = scale([
    [0, [1, 2, 3]],
    [1, [7, 8, 9]],
  ]);
  assert.deepEqual(
    [-1, 0, 1, 2].map((place) => colourAt(table, place)),
    ["rgb(1 2 3)", "rgb(1 2 3)", "rgb(7 8 9)", "rgb(7 8 9)"],
  );
});

test("equal ratios are equal steps, down to one in a thousand", () => {
  assert.equal(logarithmic(1), 1);
  assert.ok(Math.abs(logarithmic(0.1) - logarithmic(0.01) - (logarithmic(0.01) - logarithmic(0.001))) < 1e-12);
  assert.equal(logarithmic(1e-9), logarithmic(0.001));
});
