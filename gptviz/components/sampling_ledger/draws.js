// Many draws at once, and whether they came as often as they should.

export const DRAWS = 10_000;
// For a χ² test: rare tokens are counted together until at least this many are expected.
const LEAST_EXPECTED = 5;

/** How often each token comes in `DRAWS` draws with random numbers of 53 bits from the browser. @param {import("./stages.js").Stages} stages */
export function drawnOften(stages) {
  const most = 8192; // of 8 bytes: the browser gives 65,536 bytes at a time
  const counts = new Int32Array(stages.size);
  for (let begun = 0; begun < DRAWS; begun += most) {
    const bits = crypto.getRandomValues(new Uint32Array(2 * Math.min(most, DRAWS - begun)));
    for (let i = 0; i < bits.length; i += 2) {
      counts[stages.draw(((bits[i] >>> 5) * 2 ** 26 + (bits[i + 1] >>> 6)) / 2 ** 53)] += 1;
    }
  }
  return counts;
}

/** χ² of counts against probabilities, and its degrees of freedom; tokens too rare for the test are counted together. @param {Int32Array} counts @param {import("./stages.js").Stages} stages */
export function chiSquared(counts, stages) {
  /** @type {[observed: number, expected: number][]} */
  const bins = [];
  let observed = 0,
    expected = 0;
  for (let rank = stages.kept - 1; rank >= 0; rank--) {
    observed += counts[stages.order[rank]];
    expected += DRAWS * stages.after[stages.order[rank]];
    if (expected < LEAST_EXPECTED) continue;
    bins.push([observed, expected]);
    observed = expected = 0;
  }
  const last = bins[bins.length - 1];
  last[0] += observed;
  last[1] += expected;
  const statistic = bins.reduce((sum, [o, e]) => sum + (o - e) ** 2 / e, 0);
  return { statistic, freedom: bins.length - 1 };
}
