// The values that the address may hold for a view, and that commands may ask it for: Python declares those of each key
// (gptviz/settings/address_values.py) and sends them with the payload; here the values in the address are checked against them.

/**
 * The values of a key.
 *
 * @typedef {object} Values
 * @property {string[]} [names] one of these texts
 * @property {[low: number, high: number]} [whole] a whole number
 * @property {[low: number, high: number]} [real] a number
 * @property {[first: number, second: number, most: number]} [pairs] at most `most` pairs of whole numbers below these: "1.2 0.3"
 * @property {boolean} [switch] true or false
 * @property {Places} [at] names at places, with spaces between: "embed@3 blocks.0.mlp@4"
 * @property {Places} [groups] groups of these, each with a name: "first:embed@3 embed@4;second:blocks.0.mlp@4"
 * @property {any} [usual] what is chosen before anybody chooses, null for nothing
 *
 * @typedef {{ names: string[], below: number, most: number }} Places the names, what places are below, and how many there are
 *
 * @typedef {Record<string, Values>} Declared by key
 */

const AT = /^([A-Za-z0-9_.]+)@(\d{1,6})$/;
const GROUP = /^([^:;]{1,24}):(.+)$/su;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/**
 * The value that is meant; undefined where it is none of these.
 *
 * @param {Values} values
 * @param {unknown} said a text of the address, or a value as a command has it
 * @returns {any}
 */
export function valueIn(values, said) {
  const text = String(said);
  if (values.names?.includes(text)) return text;
  if (values.whole && /^\d{1,9}$/.test(text)) return within(Number(text), values.whole);
  if (values.real && NUMBER.test(text)) return within(Number(text), values.real);
  if (values.pairs) return pairsOf(text, values.pairs);
  if (values.at) return areAt(text.split(" "), values.at) ? text.split(" ") : undefined;
  if (values.groups) return groupsOf(text, values.groups);
  if (values.switch && /^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return undefined;
}

/** A value as the address has it: the text from which `valueIn` reads it. @param {any} value */
export function textOf(value) {
  if (!Array.isArray(value)) return String(value);
  /** @param {any} one a pair, a group or a name at a place */
  const text = (one) => (Array.isArray(one) ? one.join(".") : one.members ? `${one.name}:${one.members.join(" ")}` : one);
  return value.map(text).join(value[0]?.members ? ";" : " ");
}

/** @param {number} number @param {[low: number, high: number]} ends */
function within(number, [low, high]) {
  return number >= low && number <= high ? number : undefined;
}

/** @param {string} text @param {[first: number, second: number, most: number]} below */
function pairsOf(text, [first, second, most]) {
  const pairs = text.split(" ").map((one) => (/^\d{1,4}\.\d{1,4}$/.test(one) ? one.split(".").map(Number) : [NaN, NaN]));
  return pairs.length <= most && pairs.every(([a, b]) => a < first && b < second) ? pairs : undefined;
}

/** Whether these are different names at places, such as "embed@3". @param {string[]} texts @param {Places} places */
function areAt(texts, { names, below, most }) {
  const found = texts.map((text) => text.match(AT));
  const areKnown = found.every((one) => one !== null && names.includes(one[1]) && Number(one[2]) < below);
  return areKnown && new Set(texts).size === texts.length && texts.length <= most;
}

/** @param {string} text @param {Places} places */
function groupsOf(text, places) {
  const groups = text.split(";").map((one) => {
    const [, name = "", members = ""] = one.match(GROUP) ?? [];
    return { name, members: members.split(" ") };
  });
  const members = groups.flatMap((group) => group.members);
  return areAt(members, places) ? groups : undefined;
}

/**
 * The values that are possible, and those that are not; null, which asks for the usual value, stays. Other keys are ignored.
 *
 * @param {Declared} declared
 * @param {Record<string, unknown>} asked
 */
export function valuesIn(declared, asked) {
  /** @type {Record<string, any>} */
  const values = {};
  /** @type {[key: string, said: string][]} */
  const refused = [];
  for (const [key, said] of Object.entries(asked)) {
    if (!Object.hasOwn(declared, key)) continue;
    const value = said === null ? null : valueIn(declared[key], said);
    if (value === undefined) refused.push([key, String(said)]);
    else values[key] = value;
  }
  return { values, refused };
}
