// Text to tokens on the page "Try it"; tests/takehome/test_live.py compares the tokens with the library's.

import assert from "node:assert/strict";
import test from "node:test";
import { merged } from "../../gptviz/takehome/live/tokenizers.js";

/** Merge the pair of the lowest rank, of equal ones the first, until there is none: by a look at all pairs each time. */
function mergedSlowly(letters, ranks) {
  const parts = [...letters];
  for (;;) {
    const found = parts.slice(1).map((part, i) => ranks.get(`${parts[i]} ${part}`) ?? Infinity);
    const best = Math.min(...found, Infinity),
      at = found.indexOf(best);
    if (best === Infinity) return parts;
    parts.splice(at, 2, parts[at] + parts[at + 1]);
  }
}

const numbered = (pairs) => new Map(pairs.map((pair, rank) => [pair, rank]));

test("a word is merged as by a look at all its pairs each time, also where a later pair has a lower rank", () => {
  let seed = 1;
  const below = (size) => (seed = (seed * 48271) % 2147483647) % size;
  for (let round = 0; round < 300; round++) {
    const known = ["a", "b", "c"],
      pairs = [];
    for (let i = 0; i < 8; i++) {
      const [left, right] = [known[below(known.length)], known[below(known.length)]];
      known.push(left + right);
      pairs.splice(below(pairs.length + 1), 0, `${left} ${right}`);
    }
    const letters = Array.from({ length: below(25) }, () => "abc"[below(3)]);
    const ranks = numbered(pairs);
    assert.deepEqual(merged([...letters], ranks), mergedSlowly(letters, ranks));
  }
});

test("the last part of a word has no pair, although a token may be called as what JavaScript has in its place", () => {
  assert.deepEqual(merged(["x"], numbered(["x undefined"])), ["x"]);
});

test("each letter more of a word without spaces costs as much as those before", () => {
  const pairs = Array.from({ length: 20 }, (_, i) => `${"a".repeat(2 ** i)} ${"a".repeat(2 ** i)}`);
  const looks = (length) => {
    const ranks = numbered(pairs);
    let count = 0;
    const get = (pair) => {
      count += 1;
      return ranks.get(pair);
    };
    assert.equal(merged(Array(length).fill("a"), { get }).join("").length, length);
    return count;
  };
  for (const length of [10, 1000, 20_000]) assert.ok(looks(length) < 6 * length);
});
