// Colours and their scales.

import assert from "node:assert/strict";
import { test } from "node:test";
import { colourAt, diverging, inkOn, logarithmic, mixed, rgb, scale, sequential } from "../../gptviz/components/kit/colour.js";
import { ROLES } from "../../gptviz/components/kit/roles.js";

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

/** The contrast of two colours of 0 … 255 (WCAG 2.2, the smallest being 1 and the largest 21). */
function contrast(one, other) {
  const [low, high] = [one, other]
    .map((colour) => colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)))
    .map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b)
    .sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test("the ink on every colour of every scale is the better of the two, and can be read", () => {
  for (const ground of ["#FFFFFF", "#10151B"]) {
    globalThis.getComputedStyle = () => ({ getPropertyValue: () => ground });
    const scales = [diverging(null), ...Object.values(ROLES).map((role) => sequential(role, null))];
    for (const table of scales) {
      for (let i = 0; i < 256; i++) {
        const colour = [...table.slice(3 * i, 3 * i + 3)];
        const ink = rgb(inkOn(colourAt(table, i / 255)));
        const other = ink.map((one) => 255 - one);
        assert.ok(contrast(ink, colour) >= Math.max(4.5, contrast(other, colour)), `${ink} on ${colour}`);
      }
    }
  }
});
