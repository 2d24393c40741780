// Which changes of the address make a step in the browser's history.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Steps } from "../../gptviz/components/page_helpers/history_steps.js";

const STILL = { isRunning: false, isLink: false };
const RUNNING = { isRunning: true, isLink: false };

test("what is written before anything is done makes no step", () => {
  const steps = new Steps();
  assert.equal(steps.take(false), false);
  assert.equal(steps.take(true), false);
});

test("one click makes one step, whether the address or the page changes first", () => {
  const steps = new Steps();
  for (const changes of [
    [false, true, false],
    [true, false, false],
    [false, false],
  ]) {
    steps.done(STILL);
    assert.deepEqual(
      changes.map((isOtherPage) => steps.take(isOtherPage)),
      changes.map((_, at) => at === 0),
    );
  }
});

test("what is done while the app runs makes a step if it leads to another page, or is a link", () => {
  const steps = new Steps();
  steps.done(RUNNING);
  assert.equal(steps.take(false), false);
  assert.equal(steps.take(true), true);
  steps.done({ isRunning: true, isLink: true });
  assert.equal(steps.take(false), true);
  steps.done(STILL);
  steps.done(RUNNING);
  assert.equal(steps.take(false), true, "what was done before it still counts");
});

test("what is written after a step back makes none", () => {
  const steps = new Steps();
  steps.done(STILL); // a key, say, that leads back
  steps.forget();
  assert.equal(steps.take(false), false);
});
