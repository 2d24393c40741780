import assert from "node:assert/strict";
import test from "node:test";
import { all, limitOf, said, signed, tableOfUnits } from "../../gptviz/components/unit_grid/cells.js";

/** @param {string} unit @param {number | null} change @param {string | null} [edit] */
const cell = (unit, change, edit = null) => ({ unit, title: unit, edit, change });
const DATA = {
  of: "x",
  model: "m",
  prompt: "p",
  measured: "nats per token",
  code: "",
  columns: ["head 0", "MLP"],
  rows: [
    { name: "block 0", cells: [cell("a", 0.25), cell("b", -0.5, "b=mean")] },
    { name: "block 1", cells: [cell("c", null), null] },
  ],
};

test("the scale ends at the largest change, up or down", () => {
  assert.equal(limitOf(DATA), 0.5);
  assert.equal(limitOf({ ...DATA, rows: DATA.rows.slice(1) }), 0);
});

test("a line without an MLP has no cell for it", () => {
  assert.deepEqual(
    all(DATA).map(({ unit }) => unit),
    ["a", "b", "c"],
  );
});

test("a change has its sign and no more digits than a cell holds", () => {
  assert.deepEqual([0.0004, -0.0312, 0.1234, 1.04, -12.3].map(signed), ["0", "−0.031", "+0.12", "+1.0", "−12.3"]);
});

test("a cell says its edit and what the loss does without it", () => {
  assert.equal(
    said(DATA.rows[0].cells[1] ?? cell("", null), "nats"),
    "b, edited: b=mean; without it the loss changes by −0.500 nats",
  );
  assert.equal(said(cell("c", null), "nats"), "c");
});

test("the table has a row for every piece", () => {
  assert.deepEqual(tableOfUnits(DATA).rows, [
    ["a", "", 0.25],
    ["b", "b=mean", -0.5],
    ["c", "", null],
  ]);
});
