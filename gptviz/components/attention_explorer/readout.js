// The line above the tokens: what is looked at, in words and numbers.

import { chip } from "../kit/chips.js";
import { make } from "../kit/elements.js";
import { shortened } from "../kit/text.js";
import { strongest } from "./selection.js";
import { SIDES } from "./settings.js";

/** @typedef {import("./settings.js").Side} Side @typedef {import("./settings.js").Aim} Aim */
/** @typedef {import("./selection.js").Selection} Selection @typedef {import("./numbers.js").Numbers} Numbers */

// The most heads whose strongest token is given in words.
const MOST_HEADS = 5;

/** A token with its position. @param {Numbers} numbers @param {Side} side @param {number} at */
export function named(numbers, side, at) {
  const one = chip(shortened(numbers.label(side, at), 12));
  one.classList.add(`of-${side}`);
  return make("span", "named", [one, make("sub", "tiny", String(at))]);
}

/** Say in an element what is looked at. @param {HTMLElement} element @param {Selection} selection @param {Aim | null} aim */
export function readOut(element, selection, aim) {
  const { numbers, choice, heads } = selection;
  if (!numbers.has(choice.block)) {
    const why = "all blocks together are too many to send at once";
    return element.replaceChildren(`The numbers of block ${choice.block} are being sent: ${why}.`);
  }
  if (!aim) {
    const what = heads.length > 1 ? "Several heads" : selection.name;
    const hint = ` ${matchMedia("(hover: none)").matches ? "Tap" : "Hover"} one to see it alone.`;
    return element.replaceChildren(`${what}: all tokens at once.`, make("span", "hint", hint));
  }
  const { loaded } = selection,
    isMany = loaded.length > 1;
  element.classList.toggle("many", isMany);
  const isOneBlock = loaded.every(([block]) => block === loaded[0][0]);
  const parts = [named(numbers, aim.side, aim.index), aim.side === "query" ? " reads " : " is read by "];
  const rows = selection.rows(aim);
  loaded.slice(0, isMany ? MOST_HEADS : 1).forEach((at, which) => {
    const values = rows[which];
    const others = aim.partner === null ? strongest(values, isMany ? 1 : 4) : [aim.partner];
    const name = isOneBlock ? `head ${at[1]}` : `block ${at[0]} head ${at[1]}`;
    if (isMany) parts.push(make("span", "head-name", name, { style: `--mark: ${selection.colours[which]}` }), " ");
    for (const other of others) {
      const number = make("b", "number", selection.said(values[other]), { "data-value": values[other] });
      parts.push(named(numbers, SIDES[aim.side], other), number, " ");
    }
  });
  if (loaded.length > MOST_HEADS) parts.push(`and ${loaded.length - MOST_HEADS} more`);
  return element.replaceChildren(...parts);
}
