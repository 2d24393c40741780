// Several nodes of a circuit as one: a group, whose edges are the sums of those of its members.

/** @typedef {import("./layout.js").Node} Node @typedef {import("./layout.js").Edge} Edge */
/** @typedef {{ name: string, members: string[] }} Group its members by the names of their nodes */
/** @typedef {Node & { of: number[] }} Shown a node or a group, and the nodes it stands for, by their numbers in the graph */

/**
 * The graph with a node for each group that has members in it, after all others. A group stands where its highest member does;
 * what it gives is what its members give to nodes outside of it.
 *
 * @param {Node[]} nodes
 * @param {Edge[]} edges
 * @param {Group[]} groups
 * @returns {{ nodes: Shown[], edges: Edge[] }}
 */
export function grouped(nodes, edges, groups) {
  const inside = groups.map(({ name, members }) => ({
    name,
    of: nodes.flatMap((node, i) => (node.part !== "logit" && members.includes(node.name) ? [i] : [])),
  }));
  const full = inside.filter(({ of }) => of.length > 0);
  const taken = new Set(full.flatMap(({ of }) => of));
  /** @type {Shown[]} */
  const shown = nodes.flatMap((node, i) => (taken.has(i) ? [] : [{ ...node, of: [i] }]));
  for (const { name, of } of full) {
    const top = of.map((i) => nodes[i]).reduce((best, node) => (node.row > best.row ? node : best));
    const given = edges.filter((edge) => of.includes(edge.from) && !of.includes(edge.to));
    const value = given.reduce((sum, edge) => sum + edge.value, 0);
    shown.push({ ...top, name, title: name, part: "group", index: null, value, of });
  }
  /** @type {number[]} */
  const at = [];
  shown.forEach(({ of }, n) => {
    for (const i of of) at[i] = n;
  });
  /** @type {Map<string, Edge>} */
  const sums = new Map();
  for (const { from, to, kind, value, share, main } of edges) {
    if (at[from] === at[to]) continue;
    const key = `${at[from]} ${at[to]} ${kind}`;
    const before = sums.get(key) ?? { from: at[from], to: at[to], kind, value: 0, share: 0, main: false };
    const sum = { value: before.value + value, share: before.share + share, main: before.main || main };
    sums.set(key, { ...before, ...sum });
  }
  return { nodes: shown, edges: [...sums.values()] };
}

/** A name of a group as the address can have it: 1 to 24 characters, or an empty text. @param {string} typed */
export function nameOf(typed) {
  return [...typed.replaceAll(/[:;]/g, " ").trim()].slice(0, 24).join("");
}
