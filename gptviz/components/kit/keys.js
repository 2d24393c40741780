// Walking within a view by the keyboard: arrows, Home and End lead from one of its parts to another.

/** @typedef {{ row: number, column: number }} Cell */

/** @typedef {Record<string, number>} Steps how far each key leads in a list */

/** @type {Steps} */
export const ACROSS = { ArrowLeft: -1, ArrowRight: 1 };
/** @type {Steps} */
export const DOWN = { ArrowUp: -1, ArrowDown: 1 };
/** @type {Record<string, [down: number, right: number]>} */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
// From before the first cell of a row to the right, from behind the last one to the left.
/** @type {typeof ARROWS} */
const WAYS = { ...ARROWS, Home: [0, 1], End: [0, -1] };

/** Whether a key is pressed without those that make it one of the browser's. @param {KeyboardEvent} event */
export function isAlone({ ctrlKey, metaKey, altKey }) {
  return !ctrlKey && !metaKey && !altKey;
}

/**
 * Let the keys that are pressed within a part of a view act on it. The page's own keys do not see those that it takes, nor Enter
 * and the space bar, which the browser turns into a click on a button.
 *
 * @param {HTMLElement} part
 * @param {(event: KeyboardEvent) => boolean} act gives whether it took the key
 */
export function onKeys(part, act) {
  part.addEventListener("keydown", (event) => {
    if (!isAlone(event)) return;
    const isTaken = act(event);
    if (isTaken) event.preventDefault();
    if (isTaken || event.key === "Enter" || event.key === " ") event.stopPropagation();
  });
}

/**
 * The place in a list that a key leads to, at most to its ends; null for another key.
 *
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {Steps} steps of the keys other than Home and End
 */
export function along(key, at, count, steps) {
  const to = key === "Home" ? 0 : key === "End" ? count - 1 : Object.hasOwn(steps, key) ? at + steps[key] : null;
  return to === null || !count ? null : Math.max(0, Math.min(count - 1, to));
}

/**
 * The cell that a key leads to: an arrow to the nearest one on that side, Home and End to the ends of its row; the same one where there
 * is no other. Null for another key.
 *
 * @param {Cell} at
 * @param {string} key
 * @param {number} rows
 * @param {number} columns
 * @param {(cell: Cell) => boolean} [isThere] false of a cell that is passed by
 * @returns {Cell | null}
 */
export function walked(at, key, rows, columns, isThere = () => true) {
  if (!Object.hasOwn(WAYS, key)) return null;
  const [down, right] = WAYS[key];
  let row = at.row + down,
    column = key === "Home" ? 0 : key === "End" ? columns - 1 : at.column + right;
  while (row >= 0 && row < rows && column >= 0 && column < columns) {
    if (isThere({ row, column })) return { row, column };
    row += down;
    column += right;
  }
  return at;
}

/**
 * Of things in lines that break, the nearest to number `i` in the line above (`way` −1) or below (1); null where there is no such line.
 *
 * @param {number} i
 * @param {number} way
 * @param {number} count
 * @param {(i: number) => { left: number, top: number, width: number, height: number }} boxOf
 */
export function inNextLine(i, way, count, boxOf) {
  const from = boxOf(i);
  let best = null,
    nearest = Infinity,
    line = null;
  for (let j = i + way; j >= 0 && j < count; j += way) {
    const { left, top, width, height } = boxOf(j);
    if (Math.abs(top - from.top) < from.height / 2) continue;
    line ??= top;
    if (Math.abs(top - line) > height / 2) break;
    const away = Math.abs(left + width / 2 - from.left - from.width / 2);
    if (away < nearest) [best, nearest] = [j, away];
  }
  return best;
}
