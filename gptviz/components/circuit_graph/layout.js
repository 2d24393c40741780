// Where the nodes of a circuit stand, and how its edges run: positions from left to right, layers upwards.

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {"embed" | "positions" | "attention" | "mlp" | "logit"} part
 * @property {string} title in words
 * @property {number} place the position of its token
 * @property {number} row 0 for positions, 1 for tokens, 2 + 2 · block for heads, 3 + 2 · block for MLPs, −1 for the logit at the top
 * @property {number | null} index of a head
 * @property {number | null} block
 * @property {number} value what it gives to the nodes above it
 *
 * @typedef {{ from: number, to: number, kind: "value" | "key" | "query" | "mlp" | "logit", value: number, share: number }} Edge
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ place: number, left: number, width: number, afterGap: boolean }} Column
 * @typedef {{ row: number, y: number, title: string }} Row
 * @typedef {{ columns: Column[], rows: Row[], nodes: (Point & { width: number })[], width: number, height: number }} Layout
 */

// Pixels of a page of the usual size.
export const NODE = { width: 64, height: 34 };
// What stands between two positions that are no neighbours.
export const GAP = 18;
const BETWEEN = 6,
  AROUND = 6,
  ROW = 74,
  LABELS = 104,
  TOP = 10,
  TOKENS = 46;
// Where the ways into a head are, as shares of its width.
const PORTS = { query: 0.2, key: 0.5, value: 0.8, mlp: 0.5, logit: 0.5 };

/** What a row is called. @param {Node} node */
export function rowTitle({ part, block }) {
  if (part === "logit") return "logit";
  if (part === "attention") return `block ${block}, heads`;
  return part === "mlp" ? `block ${block}, MLP` : part === "embed" ? "tokens" : "positions";
}

/** @param {Node[]} nodes @returns {Layout} */
export function layout(nodes) {
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
  let left = LABELS;
  /** @type {Column[]} */
  const columns = places.map((place, i) => {
    const most = Math.max(...rowNumbers.map((row) => cells.get(`${place} ${row}`)?.length ?? 0));
    const afterGap = i > 0 ? place > places[i - 1] + 1 : place > 0;
    if (afterGap) left += GAP;
    const width = most * NODE.width + (most - 1) * BETWEEN + 2 * AROUND;
    const column = { place, left, width, afterGap };
    left += width;
    return column;
  });
  const rows = rowNumbers.map((row, i) => {
    const first = nodes.find((node) => rowOf(node) === row);
    return { row, y: TOP + i * ROW, title: first ? rowTitle(first) : "" };
  });
  /** @type {(Point & { width: number })[]} */
  const at = nodes.map(() => ({ x: 0, y: 0, width: NODE.width }));
  for (const [cell, inside] of cells) {
    const [place, row] = cell.split(" ").map(Number);
    const column = /** @type {Column} */ (columns.find((one) => one.place === place));
    const wide = inside.length * NODE.width + (inside.length - 1) * BETWEEN;
    inside.forEach((i, n) => {
      const x = column.left + (column.width - wide) / 2 + n * (NODE.width + BETWEEN);
      at[i] = { x, y: /** @type {Row} */ (rows.find((one) => one.row === row)).y, width: NODE.width };
    });
  }
  return { columns, rows, nodes: at, width: left + AROUND, height: TOP + rows.length * ROW + TOKENS - (ROW - NODE.height) };
}

/** The curve of an edge, from the top of its source to the way into its target. @param {Layout} layout @param {Edge} edge */
export function curve({ nodes }, { from, to, kind }) {
  const source = nodes[from],
    target = nodes[to];
  const x1 = source.x + source.width / 2,
    y1 = source.y,
    x2 = target.x + target.width * PORTS[kind],
    y2 = target.y + NODE.height;
  const bend = Math.max(14, 0.45 * (y1 - y2));
  // An edge that would run straight up through the nodes between goes around them.
  const passes = Math.abs(x1 - x2) < NODE.width && y1 - y2 > ROW;
  const aside = passes ? (kind === "value" ? 1 : -1) * (NODE.width / 2 + 0.09 * (y1 - y2)) : 0;
  const round = (/** @type {number} */ number) => Math.round(10 * number) / 10;
  const points = [x1, y1, x1 + aside, y1 - bend, x2 + aside, y2 + bend, x2, y2].map(round);
  return `M${points[0]} ${points[1]}C${points[2]} ${points[3]} ${points[4]} ${points[5]} ${points[6]} ${points[7]}`;
}

/** How wide an edge is drawn, in pixels: in proportion to what it adds, beside the largest. @param {number} value @param {number} largest */
export function thickness(value, largest) {
  return largest > 0 ? 1 + (6 * Math.abs(value)) / largest : 1;
}

/**
 * The node that an arrow key leads to: the nearest one on that side.
 *
 * @param {Layout} layout
 * @param {number} at
 * @param {string} key
 */
export function neighbour({ nodes }, at, key) {
  const from = nodes[at];
  let best = at,
    least = Infinity;
  nodes.forEach((node, i) => {
    const across = node.x - from.x,
      down = node.y - from.y;
    const [ahead, aside] =
      key === "ArrowLeft"
        ? [-across, down]
        : key === "ArrowRight"
          ? [across, down]
          : key === "ArrowUp"
            ? [-down, across]
            : [down, across];
    if (ahead <= 0) return;
    const isVertical = key === "ArrowUp" || key === "ArrowDown";
    const far = isVertical ? 4 * ahead + Math.abs(aside) : ahead + 6 * Math.abs(aside);
    if (far < least) [best, least] = [i, far];
  });
  return best;
}
