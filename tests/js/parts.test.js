// The parts of payloads that a page keeps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { arrived, keep } from "../../gptviz/components/kit/parts.js";

const bytes = (...numbers) => Uint8Array.from(numbers);

/** What a promise has given by now. */
async function given(promise) {
  return Promise.race([promise, new Promise((done) => setTimeout(() => done("nothing")))]);
}

test("parts are there once all of them have come, in whichever order", async () => {
  const both = arrived(["a", "b"]);
  keep("b", bytes(2));
  assert.equal(await given(both), "nothing");
  keep("a", bytes(1));
  assert.deepEqual(await given(both), [bytes(1), bytes(2)]);
});

test("a part is kept until the last one who keeps it lets go", async () => {
  const [one, other] = [keep("c", bytes(3)), keep("c", bytes(3))];
  one();
  assert.deepEqual(await given(arrived(["c"])), [bytes(3)]);
  other();
  const again = arrived(["c"]);
  assert.equal(await given(again), "nothing");
  keep("c", bytes(3));
  assert.deepEqual(await given(again), [bytes(3)], "it came again");
});
