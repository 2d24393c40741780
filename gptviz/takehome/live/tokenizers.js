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

// What Python's "\s" is: the white space of Unicode, and four separators. That of JavaScript lacks U+0085 and has U+FEFF.
const SPACE = "\\p{White_Space}\\x1c-\\x1f";
const SYMBOL = new RegExp(`[^${SPACE}]+`, "gu");

/** @param {any} fields @returns {Tokenizer} */
const ofSymbols = ({ symbols }) => ofList(symbols, 0, true, (text) => text.match(SYMBOL) ?? []);

const WORD = new RegExp(`⟨end⟩|⟨unknown⟩|[\\p{L}\\p{N}]+(?:['’-][\\p{L}\\p{N}]+)*|[^${SPACE}]`, "gu");
// A quotation mark that opens: at the beginning, after white space and after an opening bracket.
const OPENS = new RegExp(`(?<![^${SPACE}([{“‘])"`, "gu");

/** @param {any} fields @returns {Tokenizer} */
function ofCasedWords({ words }) {
  const quoted = (/** @type {string} */ text) => text.replace(OPENS, "“").replaceAll('"', "”");
  return ofList([...words, "⟨end⟩", "⟨unknown⟩"], words.length + 1, true, (text) => quoted(text).match(WORD) ?? []);
}

// GPT-2's way to cut a text, before any merge; its "\s" is the white space of Unicode.
const CUT =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** The letter that stands for each byte: its own where that can be seen, else one from U+0100 on. */
export function lettersOfBytes() {
  let next = 256;
  const isSeen = (/** @type {number} */ byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : next++));
}

/** Numbers of which the smallest comes out first: none is larger than the two that it stands above, at twice its place. */
class Heap {
  /** @type {number[]} */
  numbers = [0]; // the first place is not used

  /** @param {number} number */
  push(number) {
    let at = this.numbers.push(number) - 1;
    for (; at > 1 && this.numbers[at >> 1] > number; at >>= 1) this.numbers[at] = this.numbers[at >> 1];
    this.numbers[at] = number;
  }

  /** The smallest number, undefined if there is none. */
  pop() {
    const { numbers } = this,
      smallest = numbers[1];
    if (smallest === undefined) return undefined;
    const number = /** @type {number} */ (numbers.pop());
    if (numbers.length === 1) return smallest;
    let at = 1;
    for (let below = 2; below < numbers.length; below = 2 * at) {
      if (numbers[below + 1] < numbers[below]) below++;
      if (numbers[below] >= number) break;
      numbers[at] = numbers[below];
      at = below;
    }
    numbers[at] = number;
    return smallest;
  }
}

const PLACES = 2 ** 26; // more than a word has; a pair in the heap is its rank times this, plus its place

/** Merge the pairs of a word, the best first, of equal ones the first. @param {string[]} parts @param {Pick<Map<string, number>, "get">} ranks */
export function merged(parts, ranks) {
  const next = parts.map((_, i) => i + 1),
    before = parts.map((_, i) => i - 1),
    heap = new Heap();
  const rank = (/** @type {number} */ i) => ranks.get(`${parts[i]} ${parts[next[i]] ?? ""}`);
  const look = (/** @type {number} */ i) => {
    const found = rank(i);
    if (found !== undefined) heap.push(found * PLACES + i);
  };
  for (const i of parts.keys()) look(i);
  for (let pair = heap.pop(); pair !== undefined; pair = heap.pop()) {
    const i = pair % PLACES,
      second = next[i];
    if (rank(i) !== (pair - i) / PLACES) continue; // one of both was merged with another
    parts[i] += parts[second];
    parts[second] = "";
    next[i] = next[second];
    before[next[i]] = i;
    look(i);
    if (i > 0) look(before[i]);
  }
  return parts.filter((part) => part);
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
