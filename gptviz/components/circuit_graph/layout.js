// Where the nodes of a circuit stand, and how its edges run: positions from left to right, layers upwards.

import { ARROWS } from "../kit/keys.js";

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {"embed" | "positions" | "attention" | "mlp" | "dictionary" | "missed" | "logit" | "group"} part
 * @property {string} title in words
 * @property {string} says what its box says, where that is not what it is
 * @property {number} place the position of its token
 * @property {number} row 0 for positions, 1 for tokens, 2 + 2 · block for heads, 3 + 2 · block for MLPs, −1 for the logit at the top
 * @property {number | null} index of a head
 * @property {number} value what it gives to the nodes above it
 *
 * @typedef {{ from: number, to: number, kind: "value" | "key" | "query" | "mlp" | "logit", value: number, share: number,
 *   main: boolean }} Edge of the main path or not
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ place: number, left: number, width: number, afterGap: boolean }} Column
 * @typedef {{ row: number, y: number, height: number, title: string }} Row
 * @typedef {{ node: number, between: number, around: number }} Sizes of a node, between two in a line, and around a line
 *
 * @typedef {object} Layout
 * @property {Column[]} columns
 * @property {Row[]} rows
 * @property {(Point & { width: number })[]} nodes
 * @property {number} width
 * @property {number} height
 * @property {boolean} isWide whether a node has room for a long name
 */

// Pixels of a page of the usual size.
export const NODE = { width: 64, height: 32 };
// What stands between two positions that are no neighbours.
export const GAP = 18;
// What stands left of all positions: the names of the layers.
export const LABELS = 68;
/** @type {Sizes} where there is much room */
const WIDE = { node: 140, between: 10, around: 10 },
  /** @type {Sizes} */
  USUAL = { node: NODE.width, between: 6, around: 6 },
  /** @type {Sizes} where there is little room */
  NARROW = { node: 50, between: 4, around: 2 };
// Rows stand as far apart as a screen has room for, within these bounds.
const BETWEEN_ROWS = { most: 40, least: 14 },
  SCREEN = 420;
const BETWEEN_LINES = 8,
  TOP = 10,
  TOKENS = 50;
// The nodes of a position in one layer are in at most this many lines, even on a narrow page.
const MOST_LINES = 4;
// The places where edges enter a head, as shares of its width.
export const PORTS = { query: 0.2, key: 0.5, value: 0.8, mlp: 0.5, logit: 0.5 };

/** What a row is called. @param {number} row as of a node */
export function rowTitle(row) {
  if (row < 2) return ["logit", "positions", "tokens"][row + 1];
  return `block ${Math.floor(row / 2) - 1}, ${row % 2 ? "MLP" : "heads"}`;
}

/**
 * Where everything stands. Where there is no room for all positions side by side, the nodes of a position in one layer stand in
 * several lines, and all become narrower. If that is not enough, the graph is wider than its frame. Scrolled to the right, where
 * the logit is, the names of the layers then end between two positions: no node is cut.
 *
 * @param {Node[]} nodes
 * @param {number} [room] the width of the frame, in pixels of a page of the usual size
 * @returns {Layout}
 */
export function layout(nodes, room = Infinity) {
  const top = Math.max(...nodes.map(({ row }) => row)) + 1;
  /** @param {Node} node */
  const rowOf = (node) => (node.row < 0 ? top : node.row);
  const rowNumbers = [...new Set(nodes.map(rowOf))].sort((a, b) => b - a);
  const places = [...new Set(nodes.map(({ place }) => place))].sort((a, b) => a - b);
  /** @type {Map<string, number[]>} */
  const cells = new Map();
  nodes.forEach((node, i) => {
    const cell = `${node.place} ${rowOf(node)}`;
    cells.set(cell, [...(cells.get(cell) ?? []), i]);
  });
  for (const cell of cells.values()) cell.sort((a, b) => (nodes[a].index ?? 0) - (nodes[b].index ?? 0));
  const most = places.map((place) => Math.max(...rowNumbers.map((row) => cells.get(`${place} ${row}`)?.length ?? 0)));
  const { columns, across, sizes, width } = columnsIn(room, places, most);

  const heights = rowNumbers.map((row) => {
    const lines = Math.max(...places.map((place, i) => Math.ceil((cells.get(`${place} ${row}`)?.length ?? 0) / across[i])));
    return lines * NODE.height + (lines - 1) * BETWEEN_LINES;
  });
  const free = (SCREEN - heights.reduce((sum, height) => sum + height, 0)) / Math.max(1, rowNumbers.length - 1);
  const between = Math.max(BETWEEN_ROWS.least, Math.min(BETWEEN_ROWS.most, Math.floor(free)));
  let y = TOP;
  const rows = rowNumbers.map((row, i) => {
    const placed = { row, y, height: heights[i], title: rowTitle(row === top ? -1 : row) };
    y += heights[i] + between;
    return placed;
  });
  /** @type {(Point & { width: number })[]} */
  const at = nodes.map(() => ({ x: 0, y: 0, width: sizes.node }));
  for (const [cell, inside] of cells) {
    const [place, number] = cell.split(" ").map(Number);
    const row = /** @type {Row} */ (rows.find((one) => one.row === number));
    const column = columns[places.indexOf(place)],
      many = across[places.indexOf(place)],
      lines = Math.ceil(inside.length / many);
    const above = (row.height - lines * NODE.height - (lines - 1) * BETWEEN_LINES) / 2;
    inside.forEach((i, n) => {
      const line = Math.floor(n / many),
        inLine = Math.min(many, inside.length - line * many);
      const from = column.left + (column.width - widthOf(inLine, { ...sizes, around: 0 })) / 2;
      const x = from + (n % many) * (sizes.node + sizes.between);
      at[i] = { x, y: row.y + above + line * (NODE.height + BETWEEN_LINES), width: sizes.node };
    });
  }
  return { columns, rows, nodes: at, width, height: y - between + TOKENS, isWide: sizes === WIDE };
}

/** The width of a line of `count` nodes. @param {number} count @param {Sizes} sizes */
const widthOf = (count, { node, between, around }) => count * node + (count - 1) * between + 2 * around;

/**
 * The columns, and how many nodes stand side by side in each.
 *
 * @param {number} room
 * @param {number[]} places the position of each column
 * @param {number[]} most the nodes of the fullest cell of each column
 */
function columnsIn(room, places, most) {
  const gaps = places.map((place, i) => (place > (i > 0 ? places[i - 1] + 1 : 0) ? GAP : 0));
  const fewest = most.map((many) => Math.ceil(many / MOST_LINES));
  let across = most,
    sizes = WIDE;
  const total = () => LABELS + sizes.around + across.reduce((sum, many, i) => sum + gaps[i] + widthOf(many, sizes), 0);
  for (sizes of [WIDE, USUAL, NARROW]) {
    across = [...most];
    while (sizes !== WIDE && total() > room && across.some((many, i) => many > fewest[i])) {
      // The fullest columns become narrower first.
      const fullest = Math.max(...across.filter((many, i) => many > fewest[i]));
      across[across.findIndex((many, i) => many === fullest && many > fewest[i])] -= 1;
    }
    if (total() <= room) break;
  }

  const widths = across.map((many) => widthOf(many, sizes));
  if (total() > room) {
    // The last columns, as many as are seen beside the names of the layers, fill the room there.
    let free = room - LABELS - sizes.around,
      first = places.length;
    while (first > 0 && free >= gaps[first - 1] + widths[first - 1]) {
      first -= 1;
      free -= gaps[first] + widths[first];
    }
    for (let i = first; i < places.length; i++) widths[i] += free / (places.length - first);
  }
  let end = LABELS;
  const columns = places.map((place, i) => {
    const column = { place, left: end + gaps[i], width: widths[i], afterGap: gaps[i] > 0 };
    end = column.left + column.width;
    return column;
  });
  return { columns, across, sizes, width: end + sizes.around };
}

// How far the two ends of a curve are turned aside, in widths of a node, until it runs through no other node and not
// out of the drawing: least first.
const SIDEWAYS = [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3];
const TURNS = SIDEWAYS.flatMap((one) => SIDEWAYS.map((other) => [one, other]));
TURNS.sort((one, other) => Math.hypot(...one) - Math.hypot(...other));
// A curve is looked at in so many places.
const PLACES = 24;

/**
 * The four points of the curve of an edge, from the top of its source to the way into its target.
 *
 * @param {Layout} layout
 * @param {Edge} edge
 * @returns {Point[]}
 */
export function bend({ nodes, width }, { from, to, kind }) {
  const source = nodes[from],
    target = nodes[to];
  const x1 = source.x + source.width / 2,
    y1 = source.y,
    x2 = target.x + target.width * PORTS[kind],
    y2 = target.y + NODE.height;
  // A group may read what stands above it: such an edge goes round.
  const high = Math.max(14, 0.45 * Math.abs(y1 - y2));
  // An edge that would run straight up through the nodes between goes around them.
  const passes = Math.abs(x1 - x2) < source.width && y1 - y2 > BETWEEN_ROWS.most + 4;
  const aside = passes ? (kind === "value" ? 1 : -1) * (0.5 * source.width + 0.09 * (y1 - y2)) : 0;
  const others = nodes.filter((_, i) => i !== from && i !== to);
  /** @type {Point[]} */
  let best = [];
  let fewest = Infinity;
  for (const [one, other] of TURNS) {
    const points = [
      { x: x1, y: y1 },
      { x: x1 + aside + one * source.width, y: y1 - high },
      { x: x2 + aside + other * source.width, y: y2 + high },
      { x: x2, y: y2 },
    ];
    const on = Array.from({ length: PLACES }, (_, i) => along(points, (i + 0.5) / PLACES));
    const isHidden = (/** @type {Point} */ point) => others.some((node) => isNear(node, point, 0, 0));
    const hidden = on.filter((point) => point.x < 0 || point.x > width || isHidden(point)).length;
    if (hidden < fewest) [best, fewest] = [points, hidden];
    if (!hidden) break;
  }
  return best;
}

/** Whether a point is in a node, or as near to it as these pixels. @param {Point & { width: number }} node @param {Point} point @param {number} dx @param {number} dy */
const isNear = (node, { x, y }, dx, dy) =>
  x > node.x - dx && x < node.x + node.width + dx && y > node.y - dy && y < node.y + NODE.height + dy;

/** The place on a curve after a share of the way. @param {Point[]} points @param {number} share */
function along(points, share) {
  const left = 1 - share;
  const weights = [left ** 3, 3 * left ** 2 * share, 3 * left * share ** 2, share ** 3];
  /** @param {"x" | "y"} key */
  const at = (key) => points.reduce((sum, point, i) => sum + weights[i] * point[key], 0);
  return { x: at("x"), y: at("y") };
}

/** Where the number of an edge stands: near its middle, where no node is within these pixels. @param {Layout} placed @param {Edge} edge @param {number} dx @param {number} dy */
export function placeOfNumber(placed, edge, dx, dy) {
  const points = bend(placed, edge);
  const tried = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82].map((share) => along(points, share));
  return tried.find((point) => !placed.nodes.some((node) => isNear(node, point, dx, dy))) ?? tried[0];
}

/** The curve of an edge, for SVG. @param {Layout} placed @param {Edge} edge */
export function curve(placed, edge) {
  const [start, ...rest] = bend(placed, edge).map(({ x, y }) => `${Math.round(10 * x) / 10} ${Math.round(10 * y) / 10}`);
  return `M${start}C${rest.join(" ")}`;
}

/** How wide an edge is drawn, in pixels: in proportion to what it adds, relative to the largest. @param {number} value @param {number} largest */
export function thickness(value, largest) {
  return largest > 0 ? 1 + (6 * Math.abs(value)) / largest : 1;
}

/**
 * The node that a key leads to: an arrow to the nearest one on that side, Home and End to the ends of its line; null for another key.
 *
 * @param {Layout} layout
 * @param {number} at
 * @param {string} key
 */
export function neighbour({ nodes }, at, key) {
  const from = nodes[at];
  const line = [...nodes.keys()].filter((i) => nodes[i].y === from.y).sort((a, b) => nodes[a].x - nodes[b].x);
  if (key === "Home" || key === "End") return key === "Home" ? line[0] : line[line.length - 1];
  if (!Object.hasOwn(ARROWS, key)) return null;
  const [down, right] = ARROWS[key];
  let best = at,
    least = Infinity;
  nodes.forEach((node, i) => {
    const dx = node.x - from.x,
      dy = node.y - from.y;
    const ahead = down * dy + right * dx,
      aside = Math.abs(down ? dx : dy);
    const far = down ? 4 * ahead + aside : ahead + 6 * aside;
    if (ahead > 0 && far < least) [best, least] = [i, far];
  });
  return best;
}
