// Text to tokens, as a checkpoint's tokenizer.json says: characters, symbols, words with capitals, and byte-level merges.

/**
 * @typedef {object} Tokenizer
 * @property {boolean} spaced whether tokens stand apart in a text
 * @property {(text: string) => number[]} encode
 * @property {(text: string) => string[]} lacking the pieces of a text that the vocabulary lacks
 * @property {string[]} labels the visible forms of all tokens, by id
 * @property {string[]} texts what each token adds to a text
 */

const SYMBOLS = /** @type {Record<string, string>} */ ({ " ": "␣", "\n": "⏎", "\t": "⇥" });
const UNSEEN = /[\p{C}\p{Z}\u115f\u1160\u3164\uffa0\u2800␣⏎⇥]/u;

/** A text as it is shown, as in gptviz/text/visible_form.py. @param {string} text */
export function visible(text) {
  let hasBase = false;
  const form = (/** @type {string} */ letter) => {
    const isUnseen = letter in SYMBOLS || UNSEEN.test(letter) || (/\p{M}/u.test(letter) && !hasBase);
    hasBase = !isUnseen;
    const point = /** @type {number} */ (letter.codePointAt(0)).toString(16).toUpperCase();
    return isUnseen ? (SYMBOLS[letter] ?? `U+${point.padStart(4, "0")}`) : letter;
  };
  return [...text].map(form).join("");
}

/** One token for each piece that `read` finds. @param {string[]} pieces @param {number} unknown @param {boolean} spaced @param {(text: string) => string[]} read */
function ofList(pieces, unknown, spaced, read) {
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  return {
    spaced,
    labels: pieces.map(visible),
    texts: spaced ? pieces.map((piece) => ` ${piece}`) : pieces,
    encode: (/** @type {string} */ text) => read(text).map((piece) => ids.get(piece) ?? unknown),
    lacking: (/** @type {string} */ text) => read(text).filter((piece) => !ids.has(piece)),
  };
}

/** @param {any} fields @returns {Tokenizer} */
function ofCharacters({ characters, unknown }) {
  const every = unknown === null || characters.includes(unknown) ? characters : [...characters, unknown];
  return ofList(every, Math.max(0, every.indexOf(unknown ?? " ")), false, (text) => [...text]);
}

/** @param {any} fields @returns {Tokenizer} */
const ofSymbols = ({ symbols }) => ofList(symbols, 0, true, (text) => text.match(/\S+/g) ?? []);

const WORD = /⟨end⟩|⟨unknown⟩|[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*|\S/gu;

/** @param {any} fields @returns {Tokenizer} */
function ofCasedWords({ words }) {
  const quoted = (/** @type {string} */ text) => text.replace(/(?<![^\s([{“‘])"/g, "“").replaceAll('"', "”");
  return ofList([...words, "⟨end⟩", "⟨unknown⟩"], words.length + 1, true, (text) => quoted(text).match(WORD) ?? []);
}

// GPT-2's way to cut a text, before any merge.
const CUT = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** The letter that stands for each byte: its own where that can be seen, else one from U+0100 on. */
function lettersOfBytes() {
  let next = 256;
  const isSeen = (/** @type {number} */ byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : next++));
}

/** Merge the pairs of a word, the best first. @param {string[]} parts @param {Map<string, number>} ranks */
function merged(parts, ranks) {
  for (;;) {
    const rank = (/** @type {number} */ i) => ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
    let best = 0;
    for (let i = 1; i + 1 < parts.length; i++) if (rank(i) < rank(best)) best = i;
    if (rank(best) === Infinity) return parts;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
  }
}

/** @param {any} fields @returns {Tokenizer} */
function ofMerges({ model }) {
  const letters = lettersOfBytes(),
    bytes = new Map(letters.map((letter, byte) => [letter, byte]));
  const ranks = new Map(
    model.merges.map((/** @type {string | string[]} */ pair, /** @type {number} */ i) => [[pair].flat().join(" "), i]),
  );
  const word = (/** @type {string} */ text) => Array.from(new TextEncoder().encode(text), (byte) => letters[byte]);
  const tokens = Object.entries(model.vocab).sort(([, a], [, b]) => a - b);
  const data = tokens.map(([token]) => Uint8Array.from(token, (letter) => bytes.get(letter) ?? 0));
  return {
    spaced: false,
    lacking: () => [], // every byte has a token
    labels: data.map(shown),
    texts: data.map((one) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(one)),
    encode: (text) => (text.match(CUT) ?? []).flatMap((piece) => merged(word(piece), ranks)).map((token) => model.vocab[token]),
  };
}

/** The visible form of bytes; those that are no whole character are in hexadecimal. @param {Uint8Array} bytes */
function shown(bytes) {
  try {
    return visible(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return `<${Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ")}>`;
  }
}

/** By the kind of a tokenizer.json. @type {Record<string, (fields: any) => Tokenizer>} */
export const TOKENIZERS = { characters: ofCharacters, symbols: ofSymbols, "cased words": ofCasedWords, bpe: ofMerges };

/** The tokenizer whose parsed tokenizer.json this is. @param {any} fields @returns {Tokenizer} */
export function tokenizer(fields) {
  return TOKENIZERS[fields.kind ?? "bpe"](fields);
}
