// The cells of heatmaps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pooled, walked } from "../../gptviz/components/kit/heatmap.js";

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

test("arrows walk from cell to cell and stop at the edge, and no other key walks", () => {
  const walk = (keys) => keys.reduce((at, key) => walked(at, key, 3, 2), { row: 1, column: 0 });
  assert.deepEqual(walk(["ArrowDown", "ArrowRight"]), { row: 2, column: 1 });
  assert.deepEqual(walk(["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"]), { row: 2, column: 1 });
  assert.deepEqual(walk(["ArrowUp", "ArrowUp", "ArrowLeft"]), { row: 0, column: 0 });
  for (const key of ["Enter", "constructor", "a"]) assert.equal(walked({ row: 1, column: 1 }, key, 3, 3), null);
});
