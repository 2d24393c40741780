import { shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { placed, sizes } from "./boxes.js";
import { SMALL, apart, squares, turns } from "./geometry.js";

/** @typedef {import("./pen.js").Pen} Pen @typedef {import("./pen.js").Place} Place @typedef {import("./geometry.js").Point} Point */

// From the top of a block to the stream, and to the row of values, z and outputs.
const STREAM = 212,
  ROW = 150;

/** The boxes of one block, laid out from left to right above the stream. */
export class Block {
  /** @param {Pen} pen @param {import("./room.js").Room} room @param {number} top */
  constructor(pen, room, top) {
    this.pen = pen;
    this.room = room;
    this.at = room.at;
    this.paths = room.paths;
    this.top = top;
    this.y = top + STREAM;
    const { stack, block } = placedBlock(this.at);
    this.flows = new Map(pen.boxes.arrows(stack, block).map(([start, end, size]) => [`${start} ${end}`, size]));
    this.parts = room.parts;
    this.tight = room.isTight;
    this.w = room.w;
    this.row = top + ROW;
    this.low = 38;
  }

  /** @param {string} path */
  has(path) {
    return this.room.has(path);
  }

  /** Whether the stream goes past the sublayer, to its sum. @param {string} from @param {string} to */
  joins(from, to) {
    return this.flows.has(`${from} ${to}`);
  }

  draw() {
    const { pen, at, y } = this;
    const shapeOf = sizes(pen.boxes.at(`${at}resid_pre`).pieces[0].shape);
    this.room.fit(pen.width);
    const before = pen.drawPoint(`${at}resid_pre`, 26, y);
    pen.arrow("", before.path, turns(2, y, 20), { width: 3, head: false });
    this.caption(`${at}resid_pre`, 26, "start", 8);
    const stream = this.room.isParallel ? this.sideBySide(before) : this.oneByOne(before);
    const end = stream.x + stream.w;
    const label = end < pen.width - 74 ? { x: pen.width - 8, y: y - 8, text: shapeOf, anchor: "end" } : null;
    pen.arrow(stream.path, "", turns(end, y, pen.width - 3), { width: 3, label });
  }

  /** Each part reads what the part before it left. @param {Place} stream */
  oneByOne(stream) {
    let x = 40;
    for (const part of this.parts) {
      const out = this.after(part, part === "mlp" ? this.mlp(x, stream) : this.attention(part, x, stream));
      stream = this.join(part, stream, out);
      x = Math.max(stream.x + stream.w, out.right) + this.w.step;
    }
    return stream;
  }

  /** Attention and MLP read the same stream, and what both give is added at once. @param {Place} stream */
  sideBySide(stream) {
    const { pen, y, top, w } = this,
      sum = `${this.at}resid_post`;
    const attended = this.attention("attention", 40, stream);
    const start = attended.right + w.step;
    const norm = this.room.isShared && /** @type {Place} */ (pen.places.get(`${this.at}attention.norm`));
    const thought = this.mlp(start + (norm ? 12 : 0), norm || stream);
    const x = thought.right + 14;
    const point = pen.drawPoint(sum, x, y);
    pen.level(stream, point, y, { width: 3, head: false });
    const over = attended.right + w.step / 2;
    const way = turns(attended.x + attended.w, attended.cy, over, top + 12, x + 4, point.y);
    pen.arrow(attended.path, sum, way, { colour: ROLES[attended.role] });
    const up = turns(thought.x + thought.w, thought.cy, x - 4, point.y);
    pen.arrow(thought.path, sum, up, { colour: ROLES[thought.role] });
    this.caption(sum, x);
    return point;
  }

  /** The norm of what a part gives, where it has one. @template {Place & { right: number }} Out @param {string} part @param {Out} out */
  after(part, out) {
    const { pen, w } = this;
    if (!this.has(`${part}.norm_after`)) return out;
    const norm = pen.drawBox(`${this.at}${part}.norm_after`, out.right + 12, this.row, w.norm, this.low);
    pen.level(out, norm, norm.cy, { colour: ROLES[out.role] });
    return { ...norm, role: out.role, right: norm.x + norm.w };
  }

  /** @param {string} path @param {number} x @param {string} [anchor] @param {number} [from] */
  caption(path, x, anchor = "middle", from = x) {
    this.pen.detail(anchor === "start" ? from : x, this.y + 23, path.slice(this.at.length), { anchor });
  }

  /**
   * From the stream up to what reads it: where it leaves from, for what stands right of it.
   *
   * @param {string} part
   * @param {number} x
   * @param {Place} stream
   * @returns {{ path: string, from: Point[], right: number }}
   */
  riser(part, x, stream) {
    const { pen, w, y } = this;
    if (!this.has(`${part}.norm`))
      return {
        path: stream.path,
        from: turns(stream.x + stream.w, y, x + 4, this.row + this.low / 2),
        right: x + w.lead,
      };
    const norm = pen.drawBox(`${this.at}${part}.norm`, x, this.row, w.norm, this.low);
    pen.arrow(stream.path, norm.path, turns(norm.cx, y, norm.cx, norm.y + norm.h));
    return { path: norm.path, from: [[norm.x + norm.w, norm.cy]], right: norm.x + norm.w + w.lead };
  }

  /** @param {string} part @param {number} x @param {Place} stream */
  attention(part, x, stream) {
    const { pen, w } = this,
      at = `${this.at}${part}.`;
    const { q, k, v } = this.projections(part, x, stream);
    this.between(part, q, k);
    const scores = this.scores(at, q, k);
    const visible = this.masked(at, scores);
    const pattern = this.pattern(part, visible.x + visible.w + w.gap);
    pen.level(visible, pattern, scores.cy, { colour: ROLES.pattern });
    return this.gather(at, pattern, v);
  }

  /** @param {string} path */
  sub(path) {
    return sizes(this.pen.boxes.at(path).pieces[0].shape);
  }

  /**
   * Queries, keys and values, each from the stream, of cross-attention the latter two from the memory.
   *
   * @param {string} part
   * @param {number} x
   * @param {Place} stream
   */
  projections(part, x, stream) {
    const { pen, w, top, row } = this,
      at = `${this.at}${part}.`,
      riser = this.riser(part, x, stream),
      left = riser.right + 10,
      bus = left - 12;
    // Where a norm and a turn stand between queries and keys, they need the room.
    /** @param {string} name @param {number} y */
    const head = (name, y) => pen.drawBox(at + name, left, y, w.q, 48, { sub: this.sub(at + name) });
    const q = head("q", top + 26),
      k = head("k", top + 94),
      v = head("v", row);
    const level = riser.from[riser.from.length - 1][1];
    /** @param {Place} box */
    const rise = (box) => pen.arrow(riser.path, box.path, apart([...riser.from, [bus, level], [bus, box.cy], [box.x, box.cy]]));
    rise(q);
    if (part === "cross_attention") this.recall(bus - 9, [k, v]);
    else [k, v].forEach(rise);
    return { q, k, v };
  }

  /** The memory comes down to what is made of it. @param {number} x @param {Place[]} boxes */
  recall(x, boxes) {
    const { pen, top } = this;
    for (const box of boxes) pen.arrow("memory", box.path, turns(x, top + 2, x, box.cy, box.x));
    pen.under.append(pen.text(x - 4, top + 14, "memory", { anchor: "end", fill: pen.ink(0.72) }));
  }

  /** @param {string} at @param {Place} q @param {Place} k */
  scores(at, q, k) {
    const { pen, w, top } = this;
    const scores = pen.drawBox(`${at}scores`, q.x + w.q + w.gap + 8, top + 62, w.scores, 44, {
      sub: this.tight ? "" : this.sub(`${at}scores`),
    });
    const turn = scores.x - 9;
    for (const [box, y, colour] of /** @type {[Place, number, string][]} */ ([
      [q, scores.cy - 8, ROLES.query],
      [k, scores.cy + 8, ROLES.key],
    ]))
      pen.arrow(box.path, scores.path, turns(box.x + box.w, box.cy, turn, y, scores.x), { colour });
    const places = pen.boxes.get(`${at}positions`);
    if (places?.part === "distance") {
      const distance = pen.drawBox(places.path, scores.x, top + 14, scores.w, places.role === "weight" ? 32 : 22);
      pen.plumb(distance, scores, distance.cx);
    }
    return scores;
  }

  /** The mask behind the scores; the scores themselves where nothing is hidden. @param {string} at @param {Place} scores */
  masked(at, scores) {
    const { pen, w } = this;
    if (!this.paths.has(`${at}mask`)) return scores;
    const label = pen.boxes.at(`${at}mask`).name;
    const mask = pen.drawBox(`${at}mask`, scores.x + scores.w + w.gap, scores.cy - 12, w.mask, 24, { label });
    pen.level(scores, mask, scores.cy, { colour: ROLES.pattern });
    return mask;
  }

  /** Values weighted by the pattern, and what leaves the attention. @param {string} at @param {Place} pattern @param {Place} v */
  gather(at, pattern, v) {
    const { pen, w, row, low } = this;
    const gap = this.tight ? 9 : 16;
    const width = Math.min(w.z, (pattern.w - gap) / 2);
    const z = pen.drawBox(`${at}z`, pattern.x, row, width, low, { sub: this.tight ? "" : this.sub(`${at}z`) });
    pen.plumb(pattern, z, z.cx, { colour: ROLES.pattern });
    pen.level(v, z, z.cy, { colour: ROLES.value });
    const from = z.x + z.w + gap;
    const out = pen.drawBox(`${at}out`, from, row, Math.min(110, pattern.x + pattern.w - from), low);
    pen.level(z, out, z.cy, { colour: ROLES.value });
    return { ...out, right: Math.max(out.x + out.w, pattern.x + pattern.w) };
  }

  /** The norms and the turn that queries and keys go through. @param {string} part @param {Place} q @param {Place} k */
  between(part, q, k) {
    const { pen } = this;
    const steps = this.room.between(part);
    const each = (q.w - 4 * (steps.length - 1)) / steps.length,
      y = q.y + q.h;
    steps.forEach(({ path, label, heads }, i) => {
      const pill = pen.drawPill(path, q.x + i * (each + 4), y + 1, each, k.y - y - 2, label);
      for (const name of heads) pen.arrows.push({ start: pill.path, end: `${this.at}${part}.${name}`, element: shape("g") });
    });
  }

  /** The patterns of all heads, as large as they fit. @param {string} part @param {number} x */
  pattern(part, x) {
    const { pen, w, top } = this,
      path = `${this.at}${part}.pattern`;
    const box = pen.boxes.at(path),
      { stack, block } = placedBlock(this.at);
    const y = top + 18,
      h = 120,
      area = { x: x + 5, y: y + 17, w: w.pattern - 10, h: h - 22 };
    const place = pen.drawBox(path, x, y, w.pattern, h, { label: " ", strength: 0.02 });
    const group = /** @type {SVGElement} */ (pen.elements.get(path));
    group.append(pen.text(x + 7, y + 13, "Pattern", { size: 12.5, weight: 650, anchor: "start" }));
    if (w.pattern > 130 && !pen.isPlain)
      group.append(pen.text(x + w.pattern - 7, y + 13, sizes(box.pieces[0].shape), { anchor: "end", fill: pen.ink(0.72) }));
    const kind = part === "cross_attention" ? "cross" : stack ? "encoder" : "decoder";
    const cells = pen.data.arrays[kind];
    if (!cells || block >= cells.shape[0]) return place;
    const heads = cells.shape[1],
      [side, columns] = squares(heads, area.w, area.h);
    const left = area.x + (area.w - columns * (side + 3) + 3) / 2,
      rows = Math.ceil(heads / columns);
    const above = area.y + (area.h - rows * (side + 3) + 3) / 2;
    for (let head = 0; head < heads; head++) {
      const hx = left + (head % columns) * (side + 3),
        hy = above + Math.floor(head / columns) * (side + 3);
      const canvas = pen.thumbnail(kind, block, head, hx, hy, side);
      if (canvas) canvas.dataset.of = path;
      group.append(
        shape(
          "rect",
          { x: hx, y: hy, width: side, height: side, fill: pen.colours.ground, class: "head", "data-head": head },
          shape("title", {}, `head ${head}`),
        ),
      );
    }
    return place;
  }

  /** @param {number} x @param {Place} stream what the MLP reads, itself or through its own norm */
  mlp(x, stream) {
    const { pen, w, row, low, top } = this,
      at = `${this.at}mlp.`,
      below = row + low + 9;
    const riser = this.room.isShared ? this.under(x, stream) : this.riser("mlp", x, stream);
    const from = riser.from[riser.from.length - 1];
    const isMixture = this.has("mlp.router");
    const wide = (isMixture ? ["router", "experts"] : this.has("mlp.gate") ? ["gate", "up"] : ["up"]).map((name, i) => {
      const box = pen.drawBox(at + name, riser.right + i * (w.mlp + 12), row, w.mlp, low);
      // Past the box before it, and into it from below.
      const around = turns(riser.right - 8, from[1], riser.right - 8, below, box.cx, row + low);
      if (isMixture && i) pen.arrow(`${at}router`, box.path, turns(box.x - 12, box.cy, box.x));
      else pen.arrow(riser.path, box.path, apart([...riser.from, ...(i ? around : turns(box.x, from[1]))]));
      return box;
    });
    const last = wide[wide.length - 1];
    const down = pen.drawBox(`${at}out`, last.x + last.w + 12, row, w.mlp, low);
    const neurons = pen.drawBox(`${at}neurons`, wide[0].x, top + 76, down.x + down.w - wide[0].x, 44, {
      sub: sizes(pen.boxes.at(`${at}neurons`).pieces[0].shape),
    });
    for (const box of isMixture ? [last] : wide) pen.plumb(box, neurons, box.cx, { colour: ROLES.mlp });
    if (isMixture) {
      const aside = turns(riser.right - 8, from[1], riser.right - 8, neurons.cy, neurons.x);
      pen.arrow(riser.path, neurons.path, apart([...riser.from, ...aside]));
    }
    pen.plumb(neurons, down, down.cx, { colour: ROLES.mlp });
    return { ...down, right: down.x + down.w };
  }

  /** From the norm that attention reads, under all of it. @param {number} x @param {Place} norm */
  under(x, norm) {
    const below = this.y - 7, // below the values too
      out = norm.x + norm.w + 7;
    const from = turns(norm.x + norm.w, norm.cy, out, below, x - 6, norm.cy);
    return { path: norm.path, from, right: x + 6 };
  }

  /** What a sublayer gives meets the stream. @param {string} part @param {Place} stream @param {Place} out */
  join(part, stream, out) {
    const { pen, y, w } = this,
      x = out.cx;
    const sum = [...this.paths].find((path) => pen.boxes.at(path).part === `${part}.join`);
    const norm = this.room.normOfStream(part);
    let last = stream;
    if (sum) {
      const point = pen.drawPoint(sum, x, y);
      pen.plumb(out, point, x, { colour: ROLES[out.role] });
      if (this.joins(stream.path, sum)) pen.level(stream, point, y, { width: 3, head: false });
      last = point;
      if (!norm) this.caption(sum, x);
    }
    if (norm) {
      const left = sum ? x + 20 : x - w.norm / 2;
      const box = pen.drawBox(norm, left, y - 17, w.norm, 34);
      if (sum) pen.level(last, box, y, { width: 3, head: false });
      else pen.plumb(out, box, x);
      pen.detail(box.cx, y + 17 + SMALL, norm.slice(this.at.length));
      last = box;
    }
    return last;
  }
}

/** @param {string} at @returns {{ stack: string, block: number }} */
function placedBlock(at) {
  const { stack, block } = placed(`${at}x`);
  return { stack, block: /** @type {number} */ (block) };
}
