// How large the cells of the grid are, and what is written in and next to them.

// In rem: the size of type, the usual height of a row, the widest column, and how high many rows are together: more scroll.
const TYPE = 0.78,
  ROW = 1.5,
  WIDEST = 6.5,
  HIGHEST = 28;
// The width of a letter as a share of the size of type; the room next to a name, in letters.
export const LETTER = 0.62;
const BESIDE = 0.8;
// The height of a row with words as a share of the size of type; so many letters of a word are worth that height.
const READABLE = 1.15,
  WORTH = 3;
// Pixels, so that every cell is seen, and letters of a name at most.
const LOWEST = 4,
  LONGEST = 12;
// The name of the row below the grid.
export const REALLY = "really next";
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/**
 * Sizes in pixels.
 *
 * @typedef {object} Layout
 * @property {number} left room for the names of layers
 * @property {number} top room for the tokens
 * @property {number} width of a cell
 * @property {number} height of a cell
 * @property {number} size of type
 * @property {number} letters that a cell has room for; 0 where no names are written in cells
 * @property {number} everyToken one of this many tokens is named
 * @property {number} everyLayer one of this many layers is named
 * @property {boolean} turned whether the tokens above the grid are written upwards
 * @property {number} bottom room for what really comes next; 0 where it is not written
 * @property {number} most how high all rows may be together without scrolling
 */

/** @param {string} label */
export const lettersOf = (label) => [...label].length;

/** How many letters nine of ten labels have at most. @param {string[]} labels */
export function usualLength(labels) {
  const lengths = labels.map(lettersOf).sort((a, b) => a - b);
  return lengths.length ? Math.min(LONGEST, lengths[Math.floor(0.9 * (lengths.length - 1))]) : 1;
}

/**
 * @param {{ layers: string[], tokens: string[], names: string[] }} labels of rows, columns and cells
 * @param {number} room how wide the grid may be, in pixels
 * @param {number} unit pixels of one rem
 * @param {boolean} isReadable whether cells are made large enough for their names, so that the grid may have to scroll
 * @param {number} [spacing] pixels that the reader's own settings put between letters
 * @returns {Layout}
 */
export function layoutOf({ layers, tokens, names }, room, unit, isReadable, spacing = 0) {
  const size = TYPE * unit,
    alone = LETTER * size,
    letter = alone + spacing;
  const left = letter * (Math.max(...[...layers, REALLY].map(lettersOf)) + 1);
  const needed = letter * Math.max(usualLength(tokens), usualLength(names)) - spacing + BESIDE * alone;
  let width = Math.min((room - left) / tokens.length, WIDEST * unit);
  let height = Math.max(LOWEST, Math.min(ROW * unit, (HIGHEST * unit) / layers.length));
  if (isReadable) {
    width = Math.max(width, needed);
    height = ROW * unit;
  }
  const fitting = Math.floor((width + spacing - BESIDE * alone) / letter + 0.01);
  if (fitting >= Math.min(WORTH, usualLength(names))) height = Math.max(height, READABLE * size);
  const letters = height >= READABLE * size ? fitting : 0;
  const turned = width < needed;
  const longest = Math.min(LONGEST, Math.max(...tokens.map(lettersOf)));
  // A token that is written upwards is as wide as its type is high; where not every one is named, its position stands with it.
  const everyToken = turned ? stepOf(READABLE * size, width) : 1;
  const digits = everyToken > 1 ? String(tokens.length).length + 1 : 0;
  const top = turned ? letter * (longest + digits + 1) + 0.4 * size : 1.6 * size;
  return {
    ...{ left, top, width, height, size, letters: Math.max(0, letters), everyToken, turned },
    everyLayer: stepOf(READABLE * size, height),
    bottom: letters > 0 && !turned ? 1.7 * size : 0,
    most: Math.max(HIGHEST * unit, LOWEST * layers.length),
  };
}

/** Of how many cells one is named, where a name needs `needed` pixels. @param {number} needed @param {number} cell */
function stepOf(needed, cell) {
  return STEPS.find((step) => step * cell >= needed) ?? STEPS[STEPS.length - 1];
}
