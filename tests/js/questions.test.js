// Which answers count in a lesson that was taken home: the same as in the app (`Answer.is_right`).

import assert from "node:assert/strict";
import { test } from "node:test";

import { isRight, unpacked } from "../../gptviz/takehome/questions.js";

/** @param {Partial<import("../../gptviz/takehome/questions.js").Packed>} some */
const answer = (some) => ({ kind: "choice", value: "a", within: 0, words: "", hint: "", reveal: "", ...some });

test("a number counts within its tolerance, with a point, a comma or a minus as people write them", () => {
  const number = answer({ kind: "number", value: -1.5, within: 0.25 });
  for (const given of ["-1.5", "−1,5", " -1.75 ", "-1.25"]) assert.ok(isRight(number, given), given);
  for (const given of ["-1.76", "1.5", "", " ", "x", "Infinity", "NaN"]) assert.ok(!isRight(number, given), given);
  assert.ok(isRight(answer({ kind: "number", value: 1e6 / 3 }), String(1e6 / 3)));
});

test("a token may lack the space before it; a choice must be the same", () => {
  const token = answer({ kind: "token", value: " Mary" });
  assert.ok(isRight(token, "Mary"));
  assert.ok(isRight(token, " Mary"));
  assert.ok(!isRight(token, "mary"));
  assert.ok(!isRight(answer({ kind: "token", value: " " }), ""));
  assert.ok(isRight(answer({}), "a"));
  assert.ok(!isRight(answer({}), "a "));
});

test("an answer is unpacked as it was packed, in any script", () => {
  const packed = answer({ value: "中 −½" });
  assert.deepEqual(unpacked(Buffer.from(JSON.stringify(packed)).toString("base64")), packed);
});
