// The numbers behind the ledger: its columns in numbers, and the lines of Python that compute them.

import { DRAWS } from "./draws.js";

/** All columns over the whole vocabulary, with all digits. @param {import("./sampling_ledger.js").Ledger} ledger */
export function columnsOf({ stages, header, chosen, seeds, observed }) {
  stages.set(chosen); // a slider may just have moved
  const columns = ["id", "token", "logit", "before"];
  if (seeds) columns.push("scaled", "in top-k", "in top-p", "after", "from", "to");
  if (observed) columns.push(`drawn of ${DRAWS}`);
  const rows = Array.from(header.labels, (label, token) => {
    const row = [token, label, stages.logits[token], stages.before[token]];
    if (seeds) {
      const rank = stages.rank[token];
      row.push(stages.scaled[token], String(rank < stages.inTopK), String(rank < stages.kept));
      row.push(stages.after[token], stages.start(token), stages.ends[token]);
    }
    if (observed) row.push(observed[token]);
    return row;
  });
  return { columns, rows };
}

/** The page's lines of Python, with the settings chosen here. @param {import("./sampling_ledger.js").Ledger} ledger */
export function codeOf({ header, chosen, seeds }) {
  if (!seeds) return header.code.join("");
  const { temperature, top_k, top_p, seed } = chosen;
  const given = [`temperature=${temperature}`];
  if (top_k) given.push(`top_k=${top_k}`);
  if (top_p !== 1) given.push(`top_p=${top_p}`);
  given.push(`seed=${seed}`);
  return header.code.join(`Sampling(${given.join(", ")})`);
}
