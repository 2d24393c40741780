// Where things stand on the map, in its own pixels. Nothing here draws.

// What the layout is made for; on a page of another width all of it is made larger or smaller.
const WIDE = 820;
const WIDEST = 980;
const LARGEST_ZOOM = 1.6;
// The smallest text. The map is never drawn smaller than it is laid out: where there is less room, it scrolls.
export const SMALL = 12;
// The columns of text at both ends.
export const TOKENS = 122;
const GUESSES = 136;
// In place of the guesses, where they stand above the map: the end of the arrow that leads to them.
const ARROW_OUT = 22;
// On a page of fewer pixels the end of the map is far out of sight.
const NARROW = 640;
const ROW = 146,
  ROW_OF_TWO = 112,
  BETWEEN_ROWS = 8,
  ABOVE_BLOCK = 22,
  BLOCK = 242;
// Of more blocks than this only some are drawn: the first, the last, and those around the open one.
const MOST_BLOCKS = 16,
  AROUND = 5;
// The radius of an arrow's corners.
const CORNER = 8;

/** @typedef {[x: number, y: number]} Point */

/** The parts of the map from top to bottom, for a model with an encoder or without, with a block open or not. */
export class Layout {
  /**
   * @param {{ least: number, isDouble: boolean, hasBlock: boolean }} model `least`: how much room its blocks need
   * @param {number} room the pixels it has; 0 where that is not known yet
   */
  constructor({ least, isDouble, hasBlock }, room = 0) {
    this.width = least > WIDE ? Math.max(WIDEST, least) : WIDE; // a block takes all of it
    // Where the end of the map is out of sight, the guesses stand above the map.
    this.enough = this.width > WIDE ? this.width : NARROW;
    this.isNarrow = this.isNarrowIn(room);
    this.guesses = this.isNarrow ? ARROW_OUT : GUESSES;
    this.stacks = isDouble ? ["encoder.", ""] : [""];
    this.isDouble = isDouble;
    this.row = isDouble ? ROW_OF_TWO : ROW;
    this.block = BLOCK;
    this.topOfBlock = this.topOf(this.stacks.length - 1) + this.row + ABOVE_BLOCK;
    this.height = hasBlock ? this.topOfBlock + this.block : this.topOfBlock - ABOVE_BLOCK;
  }

  /** Whether the guesses would stand above the map. @param {number} room */
  isNarrowIn(room) {
    return room > 0 && room < this.enough;
  }

  /** Where the row of a stack begins, counted from the top. @param {number} row */
  topOf(row) {
    return row * (this.row + BETWEEN_ROWS);
  }

  /**
   * How much larger the map is drawn.
   *
   * @param {number} room the pixels it has
   * @param {number} type how much larger than usual the page's type is
   */
  zoom(room, type = 1) {
    return Math.max(1, Math.min(LARGEST_ZOOM * type, room / this.width));
  }
}

/** The points of a path; of several in one place only the first. @param {Point[]} points */
export function apart(points) {
  return points.filter((point, i) => !i || Math.hypot(point[0] - points[i - 1][0], point[1] - points[i - 1][1]) > 0.5);
}

/**
 * The points of a path that is level and plumb by turns: from (x, y) to another x, then to another y, and so on.
 *
 * @param {number} x
 * @param {number} y
 * @param {number[]} ends
 */
export function turns(x, y, ...ends) {
  /** @type {Point[]} */
  const points = [[x, y]];
  ends.forEach((end, i) => {
    if (i % 2) y = end;
    else x = end;
    points.push([x, y]);
  });
  return apart(points);
}

/** A path through points, its corners rounded, as an SVG drawing has it. @param {Point[]} points */
export function rounded(points) {
  let path = `M${points[0]}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [before, corner, after] = [points[i - 1], points[i], points[i + 1]];
    path += `L${toward(corner, before)}Q${corner} ${toward(corner, after)}`;
  }
  return `${path}L${points[points.length - 1]}`;
}

/** A point near `from` on the way to another. @param {Point} from @param {Point} to @returns {Point} */
function toward(from, to) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const far = Math.hypot(dx, dy) || 1,
    step = Math.min(CORNER, far / 2);
  return [from[0] + (dx / far) * step, from[1] + (dy / far) * step];
}

/** Into which direction a path ends, in degrees. @param {Point[]} points */
export function direction(points) {
  const [before, last = before] = points.slice(-2);
  return (Math.atan2(last[1] - before[1], last[0] - before[0]) * 180) / Math.PI;
}

/**
 * The largest side of `n` squares, with a gap of three pixels, that fit side by side, and how many stand in a row.
 *
 * @param {number} n @param {number} width @param {number} height
 * @returns {[side: number, columns: number]}
 */
export function squares(n, width, height) {
  /** @type {[number, number]} */
  let best = [0, 1];
  for (let columns = 1; columns <= n; columns++) {
    const side = Math.min((width + 3) / columns - 3, (height + 3) / Math.ceil(n / columns) - 3);
    if (side > best[0]) best = [side, columns];
  }
  return best;
}

/**
 * The numbers of the blocks that are drawn, null for a gap.
 *
 * @param {number} n how many blocks there are
 * @param {number} open the one whose neighbours are drawn
 * @returns {(number | null)[]}
 */
export function drawnBlocks(n, open) {
  const all = [...Array(n).keys()];
  if (n <= MOST_BLOCKS) return all;
  const from = Math.max(1, Math.min(open - AROUND, n - 2 * AROUND - 3)),
    to = Math.min(n - 2, from + 2 * AROUND + 1);
  return [0, ...(from > 1 ? [null] : []), ...all.slice(from, to + 1), ...(to < n - 2 ? [null] : []), n - 1];
}
