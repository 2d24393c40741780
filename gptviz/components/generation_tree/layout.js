// Where the boxes of the generation tree stand: from left to right, the current path above, other branches below it.
//
// The tokens that may come next stand at the top, next to the end of the path, and in the same place of the stage for a path of
// any length: a step or an undo does not move them.

// In pixels.
export const BETWEEN = 30; // a box and the next
const APART = 12; // boxes above each other
export const EDGE = 6; // around all

/**
 * A branch of the outline with its box, and what the layout gives it.
 *
 * @typedef {object} Placed
 * @property {{ element: { offsetWidth: number, offsetHeight: number } }} run
 * @property {boolean} strong on the current path
 * @property {boolean} current the tokens that may come next stand next to it
 * @property {Placed[]} children
 * @property {number} [x] its place, as `y`, and its size `w`, `h`
 * @property {number} [y]
 * @property {number} [w]
 * @property {number} [h]
 * @property {number} [all] the height of it and of all that follows from it
 * @property {number} [fan] the height of all that follows from it
 * @property {number | null} [next] the height of the tokens that may come next, null if they are not next to this one
 */

/** The branches of a tree, those above before those below. @param {any} branch @returns {Generator<any>} */
export function* branchesOf(branch) {
  yield branch;
  for (const child of branch.children) yield* branchesOf(child);
}

/** The most that each may have, where all that want less get what they want and the sum is at most `room`. @param {number[]} wanted @param {number} room */
export function shareOf(wanted, room) {
  const sorted = [...wanted].sort((a, b) => a - b);
  for (const [i, one] of sorted.entries()) {
    const share = room / (sorted.length - i);
    if (one >= share) return share;
    room -= one;
  }
  return Infinity;
}

/**
 * Give each branch its place `x`, `y`; it has its size `w`, `h`.
 *
 * Returns how far all reaches, the place of what may come next, and the lines between boxes as [from, x, y, class].
 *
 * @param {any} tree
 * @param {{ width: number, height: number } | null} next the size of what may come next, null where it is not shown
 */
export function placed(tree, next) {
  /** @type {{ right: number, bottom: number, fan: any, links: [any, number, number, string][] }} */
  const reached = { right: 0, bottom: 0, fan: null, links: [] };
  /** @param {any} branch @returns {number} */
  const measure = (branch) => {
    const { offsetWidth, offsetHeight } = branch.run.element;
    [branch.w, branch.h] = [offsetWidth, offsetHeight];
    /** @type {number[]} */
    const heights = branch.children.map(measure);
    branch.next = branch.current && next ? next.height : null;
    if (branch.next !== null) heights.unshift(branch.next);
    branch.fan = heights.reduce((sum, h) => sum + h + APART, -APART);
    branch.all = Math.max(branch.h, branch.fan);
    return branch.all;
  };
  /** @param {any} branch @param {number} x @param {number} top */
  const put = (branch, x, top) => {
    const beside = x + branch.w + BETWEEN;
    let y = top;
    let level = null; // of the middle of what the current path goes on with
    if (branch.next !== null) {
      reached.fan = { x: beside, y, from: branch };
      reached.right = Math.max(reached.right, beside + (next?.width ?? 0));
      level = y + branch.next / 2;
      y += branch.next + APART;
    }
    for (const child of branch.children) {
      put(child, beside, y);
      if (child.strong) level = child.y + child.h / 2;
      y += child.all + APART;
    }
    branch.x = x;
    branch.y = level === null ? top : Math.max(top, Math.min(level - branch.h / 2, top + branch.all - branch.h));
    reached.right = Math.max(reached.right, x + branch.w);
    for (const child of branch.children) {
      reached.links.push([branch, beside, child.y + child.h / 2, child.strong ? "link strong" : "link"]);
    }
  };
  reached.bottom = measure(tree) + 2 * EDGE;
  put(tree, EDGE, EDGE);
  reached.right += EDGE;
  return reached;
}

/** A line from one point to another, level at both ends. @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
export function curve(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}
