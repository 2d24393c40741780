import assert from "node:assert/strict";
import test from "node:test";
import { said, signed, tableOfCells, textOf } from "../../gptviz/components/cell_grid/cells.js";

/** @param {string} name @param {number | null} value @param {string | null} [state] */
const cell = (name, value, state = null, text = "") => ({ name, title: name, state, value, text, chosen: false });
const WORDS = { says: "without it the loss changes by", unit: "nats", ends: [-1, 1] };

test("a value has its sign and no more digits than a cell holds", () => {
  assert.deepEqual([0.0004, -0.0312, 0.1234, 1.04, -12.3].map(signed), ["0", "−0.031", "+0.12", "+1.0", "−12.3"]);
});

test("a cell shows its state, else its number, once there is a scale", () => {
  const states = [cell("a", 1, "a"), cell("a", 1, "a=mean"), cell("a", null, "a")];
  assert.deepEqual(
    states.map((one) => textOf(one, true)),
    ["off", "mean", "off"],
  );
  assert.deepEqual(
    [textOf(cell("a", 0.25), true), textOf(cell("a", 0.25), false), textOf(cell("a", null), true)],
    ["+0.25", "", ""],
  );
  assert.equal(textOf(cell("a", 0.25, null, "25 %"), true), "25 %");
});

test("a cell says its state and its value, with a sign where there are values of both", () => {
  assert.equal(said(cell("b", -0.5, "b=mean"), WORDS), "b, edited: b=mean; without it the loss changes by −0.500 nats");
  assert.equal(said(cell("c", null), WORDS), "c");
  assert.equal(said(cell("c", 0.5), { says: "score", unit: "", ends: [0, 1] }), "c; score 0.500");
});

test("the table has a row for every cell, and a column of states where cells have some", () => {
  const rows = [
    { name: "block 0", cells: [cell("a", 0.25), cell("b", -0.5, "b=mean")] },
    { name: "block 1", cells: [cell("c", null), null] },
  ];
  assert.deepEqual(tableOfCells({ rows, table: ["unit", "edit", "change"] }), {
    columns: ["unit", "edit", "change"],
    rows: [
      ["a", "", 0.25],
      ["b", "b=mean", -0.5],
      ["c", "", null],
    ],
  });
  assert.deepEqual(tableOfCells({ rows, table: ["head", "", "score"] }).rows[0], ["a", 0.25]);
});
