// What a reader has chosen in a view. The page's address holds what is not usual, so that a link reopens it, and commands of the page
// ask for other choices. Python declares the values of each key, and which one is usual: see values.js.

import { inAddress, toAddress } from "./address.js";
import { textOf, valuesIn } from "./values.js";

/** @typedef {{ number: number, asked?: Record<string, unknown> | null }} Command 0 is the number of no command */

/**
 * Commands from the server, each of which is obeyed once, also by a view that is put in the place of another. What was chosen
 * before each is kept, so that a later command can take it back.
 */
export class Commands {
  constructor() {
    this.last = 0;
    /** @type {Map<number, Record<string, unknown>>} */
    this.before = new Map();
  }

  /**
   * The values that a command asks the view to take: those it names, or, where it takes another one back, those chosen before
   * that. Null where there is nothing to obey.
   *
   * @param {Command} command
   * @param {Record<string, unknown>} chosen what is chosen now
   */
  obey({ number, asked }, chosen) {
    if (number === 0 || number === this.last || !asked) return null;
    this.last = number;
    if ("back" in asked) return this.before.get(Number(asked.back)) ?? null;
    this.before.set(number, { ...chosen });
    return asked;
  }
}

// All views of a kind on a page share it.
const commands = new Commands();

/** @template {Record<string, any>} Values by key */
export class Choices {
  /** @param {(values: Values) => string | null} [misfit] the key of a value that does not go with the others, null if all do */
  constructor(misfit = () => null) {
    this.misfit = misfit;
    /** @type {import("./values.js").Declared} */
    this.declared = {};
    /** @type {Values} */
    this.values = /** @type {any} */ ({});
  }

  get usual() {
    return Object.fromEntries(Object.entries(this.declared).map(([key, { usual = null }]) => [key, usual]));
  }

  /** All values as texts, null for none. @returns {Record<string, string | null>} */
  get written() {
    return Object.fromEntries(Object.entries(this.values).map(([key, value]) => [key, value === null ? null : textOf(value)]));
  }

  /** Begin with what the address asks for; gives what of it is impossible. @param {import("./values.js").Declared} declared */
  begin(declared) {
    this.declared = declared;
    Object.assign(this.values, this.usual);
    const said = Object.keys(declared).map((key) => [key, inAddress(key)]);
    return this.take(Object.fromEntries(said.filter(([, value]) => value !== null)));
  }

  /** For another text or model: what was chosen stays where it is still possible. @param {import("./values.js").Declared} declared */
  fit(declared) {
    const kept = Object.entries(this.written).filter(([, text]) => text !== null);
    this.declared = declared;
    Object.assign(this.values, this.usual);
    this.take(Object.fromEntries(kept));
  }

  /**
   * Take what is possible of what is asked for; null asks for the usual value. Gives what is impossible: key and value.
   *
   * @param {Record<string, unknown>} asked
   * @returns {[key: string, said: string][]}
   */
  take(asked) {
    const { values, refused } = valuesIn(this.declared, asked);
    for (const [key, value] of Object.entries(values)) Object.assign(this.values, { [key]: value ?? this.usual[key] });
    const key = this.misfit(this.values);
    if (key !== null) {
      refused.push([key, textOf(this.values[key])]);
      Object.assign(this.values, { [key]: this.usual[key] });
    }
    return refused;
  }

  /** What a command asks for, null if it asks for nothing new. @param {Command} command @param {Record<string, unknown>} [before] what was chosen before it */
  asked(command, before = this.written) {
    return commands.obey(command, before);
  }

  /** Write into the address what is not usual, and what is `named` there all the same. @param {string[]} [named] keys */
  write(named = []) {
    const { declared, written, usual } = this;
    /** @param {string} key */
    const isLeftOut = (key) => usual[key] !== null && written[key] === textOf(usual[key]) && !named.includes(key);
    toAddress(Object.fromEntries(Object.keys(declared).map((key) => [key, isLeftOut(key) ? null : (written[key] ?? null)])));
  }
}
