// The boxes of one block, from left to right above the stream.

import { shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { placed, sizes } from "./boxes.js";
import { SMALL, apart, squares, turns } from "./geometry.js";
import { STREAM } from "./pen.js";

/** @typedef {import("./pen.js").Pen} Pen @typedef {import("./pen.js").Place} Place @typedef {import("./geometry.js").Point} Point */
/** @typedef {[y: number, h: number]} Lane how far below the top of the block its boxes begin, and how high they are */

/** By the last name of a box; all others stand in the row above the stream. @type {Record<string, Lane>} */
const LANES = { q: [26, 48], k: [94, 48], v: [150, 48], scores: [62, 44], mask: [72, 24], pattern: [18, 120], neurons: [76, 44] };
/** @type {Lane} */
const ROW = [150, 38];
// How far below the top the stream runs.
const DOWN = 212;

/** The boxes of one block, laid out from left to right above the stream. */
export class Block {
  /** @param {Pen} pen @param {import("./room.js").Room} room @param {number} top */
  constructor(pen, room, top) {
    this.pen = pen;
    this.room = room;
    this.at = room.at;
    this.w = room.w;
    this.top = top;
    this.y = top + DOWN;
    const { stack, block } = placedBlock(this.at);
    this.flows = new Set(pen.boxes.arrows(stack, block).map(([start, end]) => `${start} ${end}`));
  }

  /** A box in its lane. @param {string} path @param {number} x @param {number} w @param {import("./pen.js").How} [how] */
  box(path, x, w, how) {
    const [y, h] = LANES[path.slice(path.lastIndexOf(".") + 1)] ?? ROW;
    return this.pen.drawBox(path, [x, this.top + y, w, h], how);
  }

  /** The shape of a box, as the line below its name. @param {string} path @param {boolean} [hasRoom] */
  sub(path, hasRoom = true) {
    return { sub: hasRoom ? sizes(this.pen.boxes.at(path).pieces[0].shape) : "" };
  }

  draw() {
    const { pen, at, y, room } = this;
    room.fit(pen.width);
    const before = pen.drawPoint(`${at}resid_pre`, 26, y);
    pen.arrow("", before.path, turns(2, y, 20), STREAM);
    this.caption(before.path, 8, "start");
    const stream = room.isParallel ? this.sideBySide(before) : this.oneByOne(before);
    const end = stream.x + stream.w;
    pen.arrow(stream.path, "", turns(end, y, pen.width - 3), { width: 3 });
    if (end < pen.width - 74) pen.detail(pen.width - 8, y - 8, this.sub(before.path).sub, { anchor: "end" });
  }

  /** Each part reads what the part before it left. @param {Place} stream */
  oneByOne(stream) {
    let x = 40;
    for (const part of this.room.parts) {
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
    const norm = this.room.isShared && /** @type {Place} */ (pen.places.get(`${this.at}attention.norm`));
    const thought = this.mlp(attended.right + w.step + (norm ? 12 : 0), norm || stream);
    const x = thought.right + 14;
    const point = pen.drawPoint(sum, x, y);
    pen.level(stream, point, y, STREAM);
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
    const path = `${part}.norm_after`;
    if (!this.room.has(path)) return out;
    const norm = this.box(this.at + path, out.right + 12, this.w.norm);
    this.pen.level(out, norm, norm.cy, { colour: ROLES[out.role] });
    return { ...norm, role: out.role, right: norm.x + norm.w };
  }

  /** @param {string} path @param {number} x @param {string} [anchor] */
  caption(path, x, anchor = "middle") {
    this.pen.detail(x, this.y + 23, path.slice(this.at.length), { anchor });
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
    if (!this.room.has(`${part}.norm`)) {
      const from = turns(stream.x + stream.w, y, x + 4, this.top + ROW[0] + ROW[1] / 2);
      return { path: stream.path, from, right: x + w.lead };
    }
    const norm = this.box(`${this.at}${part}.norm`, x, w.norm);
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

  /**
   * Queries, keys and values, each from the stream, of cross-attention the latter two from the memory.
   *
   * @param {string} part
   * @param {number} x
   * @param {Place} stream
   */
  projections(part, x, stream) {
    const riser = this.riser(part, x, stream),
      left = riser.right + 10,
      bus = left - 12,
      level = riser.from[riser.from.length - 1][1];
    const [q, k, v] = ["q", "k", "v"].map((name) => {
      const path = `${this.at}${part}.${name}`;
      return this.box(path, left, this.w.q, this.sub(path));
    });
    /** @param {Place} box */
    const rise = (box) =>
      this.pen.arrow(riser.path, box.path, apart([...riser.from, [bus, level], [bus, box.cy], [box.x, box.cy]]));
    rise(q);
    if (part !== "cross_attention") [k, v].forEach(rise);
    else {
      // The memory comes down to what is made of it.
      const { pen, top } = this;
      for (const box of [k, v]) pen.arrow("memory", box.path, turns(bus - 9, top + 2, bus - 9, box.cy, box.x));
      pen.under.append(pen.text(bus - 13, top + 14, "memory", { anchor: "end", fill: pen.ink(0.72) }));
    }
    return { q, k, v };
  }

  /** @param {string} at @param {Place} q @param {Place} k */
  scores(at, q, k) {
    const { pen, w, top } = this,
      path = `${at}scores`;
    const scores = this.box(path, q.x + w.q + w.gap + 8, w.scores, this.sub(path, !this.room.isTight));
    /** @param {Place} box @param {number} y @param {string} colour */
    const enter = (box, y, colour) =>
      pen.arrow(box.path, path, turns(box.x + box.w, box.cy, scores.x - 9, y, scores.x), { colour });
    enter(q, scores.cy - 8, ROLES.query);
    enter(k, scores.cy + 8, ROLES.key);
    const places = pen.boxes.get(`${at}positions`);
    if (places?.part === "distance") {
      const distance = pen.drawBox(places.path, [scores.x, top + 14, scores.w, places.role === "weight" ? 32 : 22]);
      pen.plumb(distance, scores, distance.cx);
    }
    return scores;
  }

  /** The mask behind the scores; the scores themselves where nothing is hidden. @param {string} at @param {Place} scores */
  masked(at, scores) {
    const path = `${at}mask`;
    if (!this.room.paths.has(path)) return scores;
    const mask = this.box(path, scores.x + scores.w + this.w.gap, this.w.mask);
    this.pen.level(scores, mask, scores.cy, { colour: ROLES.pattern });
    return mask;
  }

  /** Values weighted by the pattern, and what leaves the attention. @param {string} at @param {Place} pattern @param {Place} v */
  gather(at, pattern, v) {
    const { pen, w } = this,
      { isTight } = this.room,
      gap = isTight ? 9 : 16,
      end = pattern.x + pattern.w;
    const z = this.box(`${at}z`, pattern.x, Math.min(w.z, (pattern.w - gap) / 2), this.sub(`${at}z`, !isTight));
    pen.plumb(pattern, z, z.cx, { colour: ROLES.pattern });
    pen.level(v, z, z.cy, { colour: ROLES.value });
    const from = z.x + z.w + gap;
    const out = this.box(`${at}out`, from, Math.min(110, end - from));
    pen.level(z, out, z.cy, { colour: ROLES.value });
    return { ...out, right: Math.max(out.x + out.w, end) };
  }

  /** The norms and the turn that queries and keys go through. @param {string} part @param {Place} q @param {Place} k */
  between(part, q, k) {
    const { pen } = this;
    const steps = this.room.between(part);
    const each = (q.w - 4 * (steps.length - 1)) / steps.length,
      y = q.y + q.h;
    steps.forEach(({ path, label, heads }, i) => {
      pen.drawPill(path, [q.x + i * (each + 4), y + 1, each, k.y - y - 2], label);
      for (const name of heads) pen.arrows.push({ start: path, end: `${this.at}${part}.${name}`, element: shape("g") });
    });
  }

  /** The patterns of all heads, as large as they fit. @param {string} part @param {number} x */
  pattern(part, x) {
    const { pen, w } = this,
      path = `${this.at}${part}.pattern`,
      { stack, block } = placedBlock(this.at);
    const place = this.box(path, x, w.pattern, { label: " ", strength: 0.02 });
    const { y } = place;
    const group = /** @type {SVGElement} */ (pen.elements.get(path));
    group.append(pen.text(x + 7, y + 13, "Pattern", { size: 12.5, weight: 650, anchor: "start" }));
    if (w.pattern > 130 && !pen.isPlain)
      group.append(pen.text(x + w.pattern - 7, y + 13, this.sub(path).sub, { anchor: "end", fill: pen.ink(0.72) }));
    const kind = part === "cross_attention" ? "cross" : stack ? "encoder" : "decoder";
    const cells = pen.data.arrays[kind];
    if (!cells || block >= cells.shape[0]) return place;
    const heads = cells.shape[1],
      room = { width: w.pattern - 10, height: place.h - 22 },
      [side, columns] = squares(heads, room.width, room.height);
    const left = x + 5 + (room.width - columns * (side + 3) + 3) / 2,
      above = y + 17 + (room.height - Math.ceil(heads / columns) * (side + 3) + 3) / 2;
    for (let head = 0; head < heads; head++) {
      const hx = left + (head % columns) * (side + 3),
        hy = above + Math.floor(head / columns) * (side + 3);
      const canvas = pen.thumbnail(kind, block, head, { x: hx, y: hy, side });
      if (canvas) canvas.dataset.of = path;
      const frame = pen.rect([hx, hy, side, side], { fill: pen.colours.ground, class: "head", "data-head": head });
      frame.append(shape("title", {}, `head ${head}`));
      group.append(frame);
    }
    return place;
  }

  /** @param {number} x @param {Place} stream what the MLP reads, itself or through its own norm */
  mlp(x, stream) {
    const { pen, w, room } = this,
      at = `${this.at}mlp.`,
      riser = room.isShared ? this.under(x, stream) : this.riser("mlp", x, stream),
      level = riser.from[riser.from.length - 1][1],
      aside = riser.right - 8;
    const isMixture = room.has("mlp.router");
    const wide = (isMixture ? ["router", "experts"] : room.has("mlp.gate") ? ["gate", "up"] : ["up"]).map((name, i) => {
      const box = this.box(at + name, riser.right + i * (w.mlp + 12), w.mlp),
        bottom = box.y + box.h;
      // Past the box before it, and into it from below.
      const around = turns(aside, level, aside, bottom + 9, box.cx, bottom);
      if (isMixture && i) pen.arrow(`${at}router`, box.path, turns(box.x - 12, box.cy, box.x));
      else pen.arrow(riser.path, box.path, apart([...riser.from, ...(i ? around : turns(box.x, level))]));
      return box;
    });
    const last = wide[wide.length - 1];
    const down = this.box(`${at}out`, last.x + last.w + 12, w.mlp);
    const neurons = this.box(`${at}neurons`, wide[0].x, down.x + down.w - wide[0].x, this.sub(`${at}neurons`));
    for (const box of isMixture ? [last] : wide) pen.plumb(box, neurons, box.cx, { colour: ROLES.mlp });
    if (isMixture)
      pen.arrow(riser.path, neurons.path, apart([...riser.from, ...turns(aside, level, aside, neurons.cy, neurons.x)]));
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

  /** What a sublayer gives meets the stream, where that goes past the sublayer. @param {string} part @param {Place} stream @param {Place} out */
  join(part, stream, out) {
    const { pen, y, w, room } = this,
      x = out.cx;
    const sum = [...room.paths].find((path) => pen.boxes.at(path).part === `${part}.join`);
    const norm = room.normOfStream(part);
    let last = stream;
    if (sum) {
      last = pen.drawPoint(sum, x, y);
      pen.plumb(out, last, x, { colour: ROLES[out.role] });
      if (this.flows.has(`${stream.path} ${sum}`)) pen.level(stream, last, y, STREAM);
      if (!norm) this.caption(sum, x);
    }
    if (!norm) return last;
    const box = pen.drawBox(norm, [sum ? x + 20 : x - w.norm / 2, y - 17, w.norm, 34]);
    if (sum) pen.level(last, box, y, STREAM);
    else pen.plumb(out, box, x);
    pen.detail(box.cx, y + 17 + SMALL, norm.slice(this.at.length));
    return box;
  }
}

/** @param {string} at @returns {{ stack: string, block: number }} */
function placedBlock(at) {
  const { stack, block } = placed(`${at}x`);
  return { stack, block: /** @type {number} */ (block) };
}
