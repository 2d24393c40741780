// The cells of heatmaps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pooled } from "../../gptviz/components/kit/heatmap.js";

test("a pooled cell is the largest of those that it stands for, and blank where all of them are", () => {
  const values = [
    [1, 9, 2],
    [NaN, 4, 3],
    [NaN, 5, NaN],
    [NaN, NaN, NaN],
  ];
  const value = (row, column) => values[row][column];
  const cell = pooled(value, 4, 3, 2);
  assert.deepEqual(
    [0, 1].map((row) => [0, 1].map((column) => cell(row, column))),
    [
      [9, 3],
      [5, NaN],
    ],
  );
  assert.equal(pooled(value, 4, 3, 1)(0, 1), 9);
});
