// The data that are sent to the strip.

/**
 * A token of the strip: see `Token` in __init__.py.
 *
 * @typedef {object} Token
 * @property {string} label
 * @property {number | null} probability
 * @property {[label: string, probability: number][]} alternatives
 * @property {string} note
 * @property {boolean} isMarked
 * @property {boolean} isFaint
 * @property {string} kind one of the kinds in the settings, or nothing
 * @property {string} below a short text below it, or nothing
 *
 * @typedef {object} Settings
 * @property {number} generation of the text: a click on another one does not count
 * @property {string} colour
 * @property {number | null} selected
 * @property {boolean} picks whether a click chooses a token
 * @property {string} label of the strip
 * @property {string} legend
 * @property {number | null} height in pixels
 * @property {boolean} spaced
 * @property {Record<string, [colour: string, line: string]>} kinds how tokens of each kind look
 *
 * @typedef {Settings & { arrays: { tokens: Uint8Array } }} Packed
 *
 * @typedef {Settings & { tokens: Token[] }} Payload
 */

/** The settings and the tokens of a payload, whose tokens are the bytes of a list. @param {Packed} packed @returns {Payload} */
export function parsed({ arrays, ...settings }) {
  return { ...settings, tokens: JSON.parse(new TextDecoder().decode(arrays.tokens)).map(tokenOf) };
}

/** @param {[string, number | null, [string, number][], string, number, number, string, string]} packed @returns {Token} */
function tokenOf([label, probability, alternatives, note, mark, faint, kind, below]) {
  return { label, probability, alternatives, note, isMarked: Boolean(mark), isFaint: Boolean(faint), kind, below };
}

/** How many tokens at the start of two texts are the same. @param {Token[]} before @param {Token[]} after */
export function inCommon(before, after) {
  let kept = 0;
  while (kept < before.length && kept < after.length && areSame(before[kept], after[kept])) kept++;
  return kept;
}

/** @param {Token} a @param {Token} b */
function areSame(a, b) {
  return (
    a.label === b.label &&
    a.probability === b.probability &&
    a.note === b.note &&
    a.isMarked === b.isMarked &&
    a.isFaint === b.isFaint &&
    a.kind === b.kind &&
    a.below === b.below &&
    a.alternatives.length === b.alternatives.length &&
    a.alternatives.every(([label, probability], i) => label === b.alternatives[i][0] && probability === b.alternatives[i][1])
  );
}
