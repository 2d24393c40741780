// The data that are sent to the strip.

/**
 * What the server sends: see `Token` and `token_strip` in __init__.py. `generation` is of the text: a click on another one does not
 * count; `picks` says whether a click chooses a token.
 *
 * @typedef {{
 *   label: string, probability: number | null, alternatives: [label: string, probability: number][], note: string, isMarked: boolean,
 *   isFaint: boolean, kind: string, below: string,
 * }} Token
 *
 * @typedef {{
 *   generation: number, colour: string, selected: number | null, picks: boolean, label: string, legend: string, height: number | null,
 *   spaced: boolean, kinds: Record<string, [colour: string, line: string]>,
 * }} Settings
 *
 * @typedef {Settings & { arrays: { tokens: Uint8Array } }} Packed
 *
 * @typedef {Settings & { tokens: Token[] }} Payload
 */

/** The settings and the tokens of a payload, whose tokens are the bytes of a list. @param {Packed} packed @returns {Payload} */
export function parsed({ arrays, ...settings }) {
  /** @type {[string, number | null, [string, number][], string, number, number, string, string][]} */
  const listed = JSON.parse(new TextDecoder().decode(arrays.tokens));
  const tokens = listed.map(([label, probability, alternatives, note, mark, faint, kind, below]) => {
    return { label, probability, alternatives, note, isMarked: Boolean(mark), isFaint: Boolean(faint), kind, below };
  });
  return { ...settings, tokens };
}

/** How many tokens at the start of two texts are the same. @param {Token[]} before @param {Token[]} after */
export function inCommon(before, after) {
  let kept = 0;
  while (kept < before.length && kept < after.length && areSame(before[kept], after[kept])) kept++;
  return kept;
}

/** @param {Token} a @param {Token} b */
function areSame({ alternatives: ofA, ...a }, { alternatives: ofB, ...b }) {
  const isSame = Object.entries(a).every(([name, value]) => value === b[/** @type {keyof typeof b} */ (name)]);
  return isSame && ofA.length === ofB.length && ofA.every(([label, p], i) => label === ofB[i][0] && p === ofB[i][1]);
}
