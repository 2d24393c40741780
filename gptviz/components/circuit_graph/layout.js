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
 * @typedef {{ row: number, y: number, height: number, title: string }} Row
 * @typedef {{ columns: Column[], rows: Row[], nodes: (Point & { width: number })[], width: number, height: number }} Layout
 * @typedef {{ node: number, between: number, around: number }} Sizes of a node, between two in a line, and around a line
 */

// Pixels of a page of the usual size.
export const NODE = { width: 64, height: 34 };
// What stands between two positions that are no neighbours.
export const GAP = 18;
// What stands left of all positions: the names of the layers.
export const LABELS = 68;
/** @type {Sizes} */
const USUAL = { node: NODE.width, between: 6, around: 6 },
  /** @type {Sizes} where there is little room */
  NARROW = { node: 50, between: 4, around: 2 };
const BETWEEN_LINES = 8,
  BETWEEN_ROWS = 40,
  TOP = 10,
  TOKENS = 46;
// The nodes of a position in one layer are in at most this many lines, even on a narrow page.
const MOST_LINES = 4;
// The places where edges enter a head, as shares of its width.
const PORTS = { query: 0.2, key: 0.5, value: 0.8, mlp: 0.5, logit: 0.5 };

/** What a row is called. @param {Node} node */
export function rowTitle({ part, block }) {
  if (part === "logit") return "logit";
  if (part === "attention") return `block ${block}, heads`;
  return part === "mlp" ? `block ${block}, MLP` : part === "embed" ? "tokens" : "positions";
}

/**
 * Where everything stands. Where there is no room for all positions side by side, the nodes of a position in one layer stand in
 * several lines, and all become narrower. If that is not enough, the graph is wider than its frame, whose right edge then stands
 * between two positions: no node is cut when the graph opens at its beginning.
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

  let y = TOP;
  const rows = rowNumbers.map((row) => {
    const first = nodes.find((node) => rowOf(node) === row);
    const lines = Math.max(...places.map((place, i) => Math.ceil((cells.get(`${place} ${row}`)?.length ?? 0) / across[i])));
    const height = lines * NODE.height + (lines - 1) * BETWEEN_LINES;
    const placed = { row, y, height, title: first ? rowTitle(first) : "" };
    y += height + BETWEEN_ROWS;
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
  return { columns, rows, nodes: at, width, height: y - BETWEEN_ROWS + TOKENS };
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
    sizes = USUAL;
  const total = () => LABELS + sizes.around + across.reduce((sum, many, i) => sum + gaps[i] + widthOf(many, sizes), 0);
  for (sizes of [USUAL, NARROW]) {
    across = [...most];
    while (total() > room && across.some((many, i) => many > fewest[i])) {
      // The fullest columns become narrower first.
      const fullest = Math.max(...across.filter((many, i) => many > fewest[i]));
      across[across.findIndex((many, i) => many === fullest && many > fewest[i])] -= 1;
    }
    if (total() <= room) break;
  }

  /** @param {number} more pixels that every column gets in addition */
  const put = (more) => {
    let left = LABELS;
    return places.map((place, i) => {
      left += gaps[i];
      const column = { place, left, width: widthOf(across[i], sizes) + more, afterGap: gaps[i] > 0 };
      left += column.width;
      return column;
    });
  };
  let columns = put(0);
  if (total() > room) {
    const whole = columns.filter(({ left, width }) => left + width <= room);
    const last = whole.at(-1);
    if (last) columns = put((room - last.left - last.width) / whole.length);
  }
  const end = /** @type {Column} */ (columns.at(-1));
  return { columns, across, sizes, width: end.left + end.width + sizes.around };
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
  const passes = Math.abs(x1 - x2) < NODE.width && y1 - y2 > BETWEEN_ROWS + NODE.height;
  const aside = passes ? (kind === "value" ? 1 : -1) * (NODE.width / 2 + 0.09 * (y1 - y2)) : 0;
  const round = (/** @type {number} */ number) => Math.round(10 * number) / 10;
  const points = [x1, y1, x1 + aside, y1 - bend, x2 + aside, y2 + bend, x2, y2].map(round);
  return `M${points[0]} ${points[1]}C${points[2]} ${points[3]} ${points[4]} ${points[5]} ${points[6]} ${points[7]}`;
}

/** How wide an edge is drawn, in pixels: in proportion to what it adds, relative to the largest. @param {number} value @param {number} largest */
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
