// The picture to download: all that is on screen, under a heading.

import { copyOf } from "../kit/copy.js";
import { picture, textOf } from "../kit/picture.js";
import { shortened } from "../kit/text.js";
import { FACTS, SHOWS } from "./settings.js";

// What a reader changes the view with: the heading says what was chosen.
const CONTROLS = ".order, .filter, .shut, .hint, details";

/** @param {import("./attention_explorer.js").Explorer} explorer */
export function drawing(explorer) {
  const { numbers, selection, choice } = explorer;
  const { show, direction, query, key } = choice;
  /** @param {"query" | "key"} side @param {number} at */
  const named = (side, at) => `“${shortened(numbers.label(side, at), 12)}” (${at})`;
  const cell = `How ${named("query", query ?? 0)} comes to read ${named("key", key ?? 0)}: `;
  const read = textOf(numbers.keys, numbers.spaced);
  const heading = {
    title: (selection.isOpen ? cell : "Who reads whom: ") + selection.title,
    model: numbers.model,
    prompt: numbers.alone ? read : `${read}” → “${textOf(numbers.queries, numbers.spaced)}`,
    settings: [
      SHOWS[show].name.toLowerCase(),
      direction === "out" ? "what a token reads" : "who reads a token",
      ...(choice.log ? ["log colours"] : []),
      ...(choice.sort ? [`heads by ${FACTS[choice.sort].name}`] : []),
    ],
  };
  return explorer.whole(() => picture(explorer.root, heading, copyOf([explorer.body], CONTROLS)));
}
