// What of a strip stays where its text changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inCommon, parsed } from "../../gptviz/components/token_strip/tokens.js";

const packed = (tokens) => ({ height: 3, arrays: { tokens: new TextEncoder().encode(JSON.stringify(tokens)) } });
const TOKENS = [
  ["a", 0.5, [["a", 0.5]], "", 0, 0, "word", "12"],
  ["b", null, [], "note", 1, 1, "", ""],
];

test("a payload is read as it was packed", () => {
  const { height, tokens } = parsed(packed(TOKENS));
  assert.equal(height, 3);
  assert.deepEqual(tokens[0], {
    label: "a",
    probability: 0.5,
    alternatives: [["a", 0.5]],
    note: "",
    isMarked: false,
    isFaint: false,
    kind: "word",
    below: "12",
  });
  assert.deepEqual([tokens[1].probability, tokens[1].note, tokens[1].isMarked, tokens[1].isFaint], [null, "note", true, true]);
});

test("tokens stay up to the first that differs in anything", () => {
  const before = parsed(packed(TOKENS)).tokens;
  assert.equal(inCommon(before, before), 2);
  assert.equal(inCommon(before, []), 0);
  const others = [
    ["x", 0.5, [["a", 0.5]], "", 0, 0, "word", "12"],
    ["a", 0.4, [["a", 0.5]], "", 0, 0, "word", "12"],
    ["a", 0.5, [["a", 0.4]], "", 0, 0, "word", "12"],
  ];
  for (const other of [
    ...others,
    ["a", 0.5, [], "", 0, 0, "word", "12"],
    ["a", 0.5, [["a", 0.5]], "x", 0, 0, "word", "12"],
    ["a", 0.5, [["a", 0.5]], "", 1, 0, "word", "12"],
    ["a", 0.5, [["a", 0.5]], "", 0, 0, "sign", "12"],
    ["a", 0.5, [["a", 0.5]], "", 0, 0, "word", "13"],
  ]) {
    assert.equal(inCommon(before, parsed(packed([other, TOKENS[1]])).tokens), 0);
  }
});
