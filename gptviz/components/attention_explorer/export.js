// What is shown as a table, and the code that computes it.

import { MEAN, SHOWS } from "./settings.js";

/** Every visible cell of the heads shown. @param {import("./selection.js").Selection} selection */
export function tableOfHeads({ numbers, choice, loaded, value }) {
  const rows = [],
    ofHeads = choice.show !== "rollout";
  for (const [block, head] of loaded) {
    for (let query = 0; query < numbers.nQuery; query++) {
      for (let key = 0; key < numbers.nKey; key++) {
        const one = value(block, head, query, key);
        if (Number.isNaN(one)) continue;
        rows.push([block, ...(ofHeads ? [head] : []), query, numbers.queries[query], key, numbers.keys[key], one]);
      }
    }
  }
  const places = ["query position", "query", "key position", "key"];
  return { columns: ["block", ...(ofHeads ? ["head"] : []), ...places, SHOWS[choice.show].unit], rows };
}

/** The lines of Python that compute what is shown. @param {import("./selection.js").Selection} selection */
export function codeOfHeads({ numbers, choice, heads, isOpen, opened }) {
  const { block, query, key, show } = choice;
  const places = heads.map(([of, head]) => [of, head === MEAN ? "None" : head]);
  /** @type {Record<string, (at: string) => string>} */
  const calls = {
    pattern: (at) => `reading.pattern(${at})`,
    value: (at) => `reading.value_weighted(${at})`,
    rest: (at) => `reading.without_first(${at})`,
    rollout: () => `reading.rollout(${block})`,
  };
  const ask = calls[show];
  const lines = [numbers.code];
  if (places.length > 1) {
    lines.push(`heads = [${places.map((at) => `(${at.join(", ")})`).join(", ")}]`);
    lines.push(`shown = {(block, head): ${ask("block, head")} for block, head in heads}  # [query, key] each`);
  } else lines.push(`shown = ${ask(places[0].join(", "))}  # [query, key]`);
  if (isOpen) {
    const [, head] = opened,
      at = block - (numbers.count < numbers.n_block ? numbers.first : 0);
    lines.push(
      "",
      `products = reading.q[${at}, ${head}, ${query}] * reading.k[${at}, ${head}, ${key}]  # their sum is q · k`,
      `score = reading.scores(${block}, ${head})[${query}, ${key}]`,
      `share = reading.pattern(${block}, ${head})[${query}, ${key}]`,
    );
  }
  return lines.join("\n");
}
