// The heading of a picture and the colours of a copy, as far as they need no page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stopsOf } from "../../gptviz/components/kit/copy.js";
import { textOf, wrapped } from "../../gptviz/components/kit/picture.js";
import { paintOf } from "../../gptviz/components/kit/svg.js";

const letters = (text) => [...text].length;

test("lines break after spaces, none is too wide, and no character is lost but the spaces at their ends", () => {
  assert.deepEqual(wrapped("to be or not to be", 8, letters), ["to be or", "not to", "be"]);
  assert.deepEqual(wrapped("a supercalifragilistic word", 6, letters), ["a", "superc", "alifra", "gilist", "ic", "word"]);
  assert.deepEqual(wrapped("", 8, letters), [""]);
  assert.deepEqual(wrapped("🙂🙂🙂", 2, letters), ["🙂🙂", "🙂"]);
  for (let width = 1; width < 30; width++) {
    const text = "What is it, that you would have me do?  I know not.";
    const lines = wrapped(text, width, letters);
    assert.ok(lines.every((line) => letters(line) <= width));
    assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
  }
});

test("tokens are a text again", () => {
  assert.equal(textOf(["To", "␣be", "␣or⏎", "not"]), "To be or⏎not");
  assert.equal(textOf(["a", "b"], true), "a b");
});

test("colours that a browser computed are written out", () => {
  assert.deepEqual(paintOf("rgb(1, 2, 3)"), { paint: "rgb(1, 2, 3)", opacity: 1 });
  assert.deepEqual(paintOf("rgba(0, 0, 0, 0)"), { paint: "rgb(0, 0, 0)", opacity: 0 });
  assert.deepEqual(paintOf("rgb(238 51 119 / 0.25)"), { paint: "rgb(238, 51, 119)", opacity: 0.25 });
  assert.deepEqual(paintOf("color(srgb 1 0.2 0 / 0.5)"), { paint: "rgb(255, 51, 0)", opacity: 0.5 });
  assert.equal(paintOf("none").opacity, 0);
  const stops = stopsOf("rgb(1, 2, 3) 0%, rgba(4, 5, 6, 0.5) 50%, rgb(7, 8, 9) 100%");
  assert.deepEqual(
    stops.map(({ place }) => place),
    ["0%", "50%", "100%"],
  );
  assert.deepEqual(stops[1], { paint: "rgb(4, 5, 6)", opacity: 0.5, place: "50%" });
});
