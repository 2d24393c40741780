import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { chip, percent, shortened, spoken } from "../kit/text.js";
import { apart } from "./block.js";
import { plural, short, sizes, sure, tint } from "./boxes.js";

export const TOKENS = 122;
export const GUESSES = 136;
// More blocks than this are not all drawn: the first, the last, and those around the open one.
const MOST_BLOCKS = 16;
// So few guesses have a line for the name and one for the bar.
const MOST_WITH_ROOM = 4;

/** The whole model from tokens to guesses, its blocks folded. */
export class Whole {
  constructor(map) {
    this.map = map;
    this.memory = null; // where the encoder ends
  }

  drawStack(stack, top) {
    const { map } = this,
      { data, boxes } = map;
    const middle = top + map.heightOfRow / 2 + (data.sizes[0] ? 4 : 6);
    const encoder = stack === "encoder.";
    const from = this.drawStart(stack, top, middle);
    const end = map.width - GUESSES - (encoder ? 70 : 96);
    const normed = boxes.get(`${stack}final_norm`);
    const left = normed ? end - 68 : end;
    let last = this.drawBlocks(stack, from, left, middle);
    if (normed) {
      const norm = map.drawBox(`${stack}final_norm`, left, middle - 20, 52, 40);
      map.level(last, norm, middle, { width: 3, head: false });
      last = norm;
    }
    if (encoder) {
      this.memory = map.drawBox("memory", end, middle - 20, 66, 40, { sub: this.shapeOf("memory") });
      map.level(last, this.memory, middle, { width: 3, head: false });
    } else this.drawHead(last, end, top, middle);
  }

  shapeOf(path) {
    return sizes(this.map.boxes.get(path)?.pieces[0]?.shape ?? []);
  }

  /** Tokens, embedding, and the positions that are added to it: what the blocks go on from. */
  drawStart(stack, top, middle) {
    const { map } = this,
      { data, boxes } = map;
    const tokens = stack ? data.source : data.tokens;
    map.columns.push(this.tokensAt(stack, tokens, top));
    map.order.push(`${stack}ids`);
    const embed = map.drawBox(`${stack}embed`, TOKENS + 34, middle - 24, data.sizes[0] ? 66 : 56, 48);
    map.level({ path: `${stack}ids`, x: TOKENS, w: 4 }, embed, middle, {
      label: { x: TOKENS + 18, y: middle - 6, text: sizes([tokens.length]) },
    });
    const placing = boxes.get(`${stack}positions`);
    if (!placing) return embed;
    const n = boxes.blocks(stack),
      joined = n ? `${stack}blocks.0.resid_pre` : `${stack}stream`,
      x = embed.x + embed.w + 34;
    const learned = placing.pieces.length > 1;
    const positions = map.drawBox(placing.path, x - 31, middle + (data.sizes[0] ? 22 : 34), 62, learned ? 34 : 24);
    // The first block's own entrance is where the two are added; it is drawn with the whole model too.
    const sum = n ? map.plus(joined, x, middle) : map.drawPoint(joined, x, middle);
    map.level(embed, sum, middle, { width: 3, head: false });
    map.plumb(positions, sum, x);
    return sum;
  }

  /** From the end of the stream to the guesses. */
  drawHead(last, x, top, middle) {
    const { map } = this;
    const heads = ["head.token", "shares", "logits"].filter((path) => map.boxes.get(path));
    const each = heads.length > 1 ? 38 : 48,
      gap = 9;
    let y = middle - (heads.length * each + (heads.length - 1) * gap) / 2;
    let above = null;
    for (const path of heads) {
      const box = map.drawBox(path, x, y, 66, each);
      if (above) map.plumb(above, box, box.cx, { colour: ROLES.output });
      else {
        const from = last.x + last.w,
          turn = (from + x) / 2;
        const points = [
          [from, middle],
          [turn, middle],
          [turn, box.cy],
          [x, box.cy],
        ];
        map.arrow(last.path, path, points.filter(apart), { width: 3, head: false });
      }
      above = box;
      y += each + gap;
    }
    map.level(above, { path: "guesses", x: map.width - GUESSES - 4 }, above.cy, { colour: ROLES.output });
    map.under.append(
      map.text(above.cx, above.y + above.h + 3 + map.small, this.shapeOf("logits"), { size: map.small, fill: map.ink(0.72) }),
    );
    map.columns.push(this.guessesAt(top));
  }

  /** The numbers of the blocks that are drawn; null for a gap. */
  numbers(stack) {
    const n = this.map.boxes.blocks(stack),
      all = [...Array(n).keys()];
    if (n <= MOST_BLOCKS) return all;
    const around = this.map.chosen.stack === stack ? this.map.chosen.block : 0,
      reach = 5;
    const from = Math.max(1, Math.min(around - reach, n - 2 * reach - 3)),
      to = Math.min(n - 2, from + 2 * reach + 1);
    return [0, ...(from > 1 ? [null] : []), ...all.slice(from, to + 1), ...(to < n - 2 ? [null] : []), n - 1];
  }

  /** The blocks, from where the stream begins to where the last of them ends. */
  drawBlocks(stack, from, right, middle) {
    const { data } = this.map;
    const numbers = this.numbers(stack);
    const n = numbers.length,
      left = from.x + from.w;
    const shapeText = sizes(this.map.boxes.get(`${stack}embed`).pieces[0].shape);
    if (!n) {
      const faint = { size: this.map.small, fill: this.map.ink(0.72) };
      this.map.under.append(this.map.text((left + right) / 2, middle - 8, shapeText, faint));
      this.map.under.append(this.map.text((left + right) / 2, middle + 18, "no blocks", { size: 11, fill: this.map.ink(0.6) }));
      return from;
    }
    const room = right - left - 46 - 10,
      each = Math.min(110, room / n),
      w = Math.min(46, each - Math.max(4, each * 0.2)),
      h = data.sizes[0] ? 84 : 100;
    const lead = 46 + (room - n * each + each - w) / 2,
      last = left + lead + (n - 1) * each + w;
    this.map.under.append(
      shape("path", { d: `M${left} ${middle}H${last}`, stroke: ROLES.stream, "stroke-width": 3, class: "arrow" }),
    );
    this.map.under.append(this.map.text(left + 24, middle - 7, shapeText, { size: this.map.small, fill: this.map.ink(0.72) }));
    numbers.forEach((block, i) => {
      const x = left + lead + i * each;
      if (block === null) {
        this.map.under.append(
          shape("rect", { x, y: middle - 8, width: w, height: 16, fill: this.map.colours.ground }),
          this.map.text(x + w / 2, middle + 4, "⋯", { size: 14 }),
        );
        return;
      }
      this.drawSlim(stack, block, x, middle - h / 2, w, h);
    });
    const size = `${plural(this.map.boxes.blocks(stack), "block")}, W ${short(data.counts[stack])}${n > 1 ? " each" : ""}`;
    // Between two stacks there is no room above the blocks.
    const [x, y, anchor] = data.sizes[0]
      ? [last + 10, middle - 8, "start"]
      : [(left + lead + last) / 2, middle - h / 2 - 5, "middle"];
    this.map.under.append(this.map.text(x, y, size, { size: this.map.small, anchor, fill: this.map.ink(0.72) }));
    return { path: `${stack}blocks.${this.map.boxes.blocks(stack) - 1}.resid_post`, x: last, w: 0 };
  }

  /** A block that is folded: its mean pattern, its MLP, its number. */
  drawSlim(stack, block, x, y, w, h) {
    const open = stack === this.map.chosen.stack && block === this.map.chosen.block;
    const path = `${stack}blocks.${block}`;
    const { small } = this.map,
      inset = 3,
      side = Math.max(0, w - 2 * inset);
    const has = (part) => this.map.boxes.get(`${path}.${part}`);
    const parts = [
      shape("rect", {
        x,
        y,
        width: w,
        height: h,
        rx: 5,
        fill: this.map.colours.ground,
        stroke: open ? this.map.ink() : ROLES.stream,
        "stroke-width": open ? 2.2 : 1.4,
        class: "edge",
      }),
      shape("rect", { x: x + inset, y: y + inset, width: side, height: side, rx: 2, fill: this.map.mix(ROLES.pattern, 0.08) }),
    ];
    this.map.thumbnail(stack ? "encoder" : "decoder", block, null, x + inset, y + inset, side);
    const bars = [...(has("cross_attention.q") ? [["pattern", "cross"]] : []), ...(has("mlp.up") ? [["mlp", "MLP"]] : [])];
    let below = y + inset + side + 3;
    const tall = (y + h - 17 - below - 3 * (bars.length - 1)) / bars.length;
    for (const [role, letters] of bars) {
      parts.push(
        shape("rect", {
          x: x + inset,
          y: below,
          width: side,
          height: tall,
          rx: 2,
          fill: this.map.mix(ROLES[role], 0.2),
          stroke: ROLES[role],
          "stroke-width": 1,
        }),
      );
      if (w > 30 && tall > small)
        parts.push(this.map.text(x + w / 2, below + tall / 2 + 3.5, letters, { size: small, weight: 600 }));
      below += tall + 3;
    }
    const size = w < 16 ? small : Math.max(12, small);
    parts.push(this.map.text(x + w / 2, y + h - 5, block, { size, weight: open ? 700 : 500 }));
    const group = this.map.held(
      path,
      `${this.map.blockName(stack, block)}, ${open ? "open" : "folded"}, ${plural(this.map.data.counts[stack], "parameter")}`,
      { "data-block": path, "data-stack": stack, "data-number": block, "aria-expanded": open },
      ...parts,
    );
    if (open) {
      this.map.lens = { x, w, bottom: y + h };
      this.map.order.push(...this.map.boxes.of(stack, block));
    }
    if (has("cross_attention.q") && this.memory) {
      // What every block of the decoder reads of the encoder.
      const at = x + w / 2;
      this.map.arrow("memory", path, [
        [this.memory.cx, this.memory.y + this.memory.h],
        [this.memory.cx, this.memory.y + this.memory.h + 25],
        [at, this.memory.y + this.memory.h + 25],
        [at, y],
      ]);
    }
    return group;
  }

  // Text at both ends

  column(x, top, width, height, heading, path) {
    const column = make("div", "column");
    Object.assign(column.style, { left: `${x}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    const head = path
      ? make("button", "heading", heading, { "data-box": path, "data-path": path })
      : make("div", "heading", heading);
    if (path) this.map.elements.set(path, head);
    column.append(head);
    return column;
  }

  tokensAt(stack, tokens, top) {
    const heading = this.map.data.sizes[0]
      ? stack
        ? `Source: ${plural(tokens.length, "token")}`
        : `Written: ${plural(tokens.length, "token")}`
      : plural(tokens.length, "token");
    const column = this.column(0, top, TOKENS, this.map.heightOfRow, heading, `${stack}ids`);
    column.append(this.strip(tokens, "how probable the model found it"));
    return column;
  }

  strip(tokens, meaning) {
    const strip = make("div", `strip${this.map.data.spaced ? " spaced" : ""}`, undefined, {
      role: "list",
      "aria-label": "Tokens",
    });
    for (const [label, probability] of tokens) {
      const token = chip(label);
      token.setAttribute("role", "listitem");
      if (probability !== null) {
        token.setAttribute("aria-label", `${spoken(label)}, ${percent(probability)}`);
        tint(token, probability);
        token.title = `${spoken(label)}: ${percent(probability)}, ${meaning}`;
      }
      strip.append(token, make("wbr"));
    }
    return strip;
  }

  guessesAt(top) {
    const { data } = this.map;
    const heading = {
      decoder: "Next token",
      classifier: "Label",
      "encoder-decoder": `Answer: ${plural(data.guesses.length, "token")}`,
    }[data.kind];
    const column = this.column(this.map.width - GUESSES, top, GUESSES, this.map.heightOfRow, heading, null);
    if (data.kind === "encoder-decoder") {
      column.append(this.strip(data.guesses, "how sure it was"));
      return column;
    }
    const list = make("div", `guesses${data.guesses.length <= MOST_WITH_ROOM ? " roomy" : ""}`);
    column.append(list);
    data.guesses.forEach(([label, probability], i) => {
      const line = make(data.takes ? "button" : "div", "guess", undefined, { "data-guess": i });
      const name = make("span", "name", shortened(label, 12));
      tint(name, probability);
      const track = make("span", "track");
      const fill = make("span", "fill");
      fill.style.width = `${100 * probability}%`;
      track.append(fill);
      line.append(name, track, make("span", "number", sure(probability)));
      line.title = data.takes ? `Append ${spoken(label)} to the prompt` : label;
      line.setAttribute("aria-label", `${data.takes ? "take " : ""}${spoken(label)}, ${sure(probability)}`);
      list.append(line);
      if (!data.takes) return;
      const path = `guess ${i}`;
      line.dataset.path = path;
      this.map.elements.set(path, line);
      this.map.order.push(path);
    });
    return column;
  }
}
