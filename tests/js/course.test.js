// What a course site is told: within the lengths that SCORM 1.2 has, and only where a window has a run-time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { packed, runtimeAround, timespan, unpackedBecame } from "../../gptviz/takehome/course.js";

const questions = Array.from({ length: 300 }, (_, number) => ({
  ...{ name: `step-1-question-${number + 1}`, ask: "", kind: "token", options: [], value: "a", within: 0 },
}));

test("what became of questions is read again as it was written", () => {
  const became = new Map([
    [7, { given: "é “中”", right: false }],
    [2, { given: "a", right: true }],
  ]);
  assert.deepEqual(unpackedBecame(questions, packed(questions, became)), became);
});

test("a long text keeps whether each answer was right, in the characters that there are", () => {
  const became = new Map(questions.map((_, number) => [number, { given: "x".repeat(500), right: number % 2 === 0 }]));
  const text = packed(questions, became);
  assert.ok(text.length <= 4096, String(text.length));
  const read = [...unpackedBecame(questions, text).values()];
  assert.deepEqual(
    read.map(({ right }) => right),
    [...became.values()].map(({ right }) => right),
  );
});

test("a run-time is looked for around the file and behind what opened it, and the search ends", () => {
  const found = { LMSInitialize: () => "true" };
  const top = (/** @type {object} */ more) => {
    const window = { ...more };
    return Object.assign(window, { parent: window });
  };
  assert.equal(runtimeAround({ parent: { parent: top({ API: found }) } }), found);
  assert.equal(runtimeAround({ parent: top({ opener: { parent: top({ API: found }) } }) }), found);
  assert.equal(runtimeAround(top({})), null);
  const circle = /** @type {any} */ ({});
  circle.parent = { parent: circle };
  assert.equal(runtimeAround(circle), null);
  const foreign = Object.defineProperty({}, "API", {
    get() {
      throw new Error("a window of another site");
    },
  });
  assert.equal(runtimeAround({ parent: foreign }), null);
});

test("a time is written in hours, minutes and seconds", () => {
  assert.equal(timespan(0), "0000:00:00");
  assert.equal(timespan((2 * 3600 + 3 * 60 + 4.9) * 1000), "0002:03:04");
});
