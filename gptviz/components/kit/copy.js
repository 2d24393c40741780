// Parts of a view as a drawing that stands alone: what is on screen, shape by shape and word by word.

import { setAttributes, shape } from "./elements.js";
import { remembered } from "./remembered.js";
import { paintOf } from "./svg.js";

// The styles that a drawing of the page has from its style sheet, and that a drawing in a file must carry itself.
const LOOKS = [
  ...["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "visibility"],
  ...["font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "image-rendering"],
];
const OF_A_LINEAR_GRADIENT = /^linear-gradient\(to right, (.*)\)$/;

/** @typedef {{ left: number, top: number }} Origin where the drawing begins on the screen */
/** @typedef {{ x: number, y: number, width: number, height: number }} Place in the drawing */

/** The stops of a computed gradient from left to right. @param {string} list "rgb(…) 0%, rgb(…) 50%" */
export function stopsOf(list) {
  return list.split(/,\s*(?=[a-z])/).map((stop, i, all) => {
    const [, colour, place] = stop.match(/^(.*?\))\s*([\d.]+%)?/) ?? [];
    return { ...paintOf(colour ?? stop), place: place ?? `${(100 * i) / Math.max(1, all.length - 1)}%` };
  });
}

/** Copies parts of a page into one drawing. */
class Copier {
  /** @param {Origin} origin @param {string} leftOut a selector of what is not copied */
  constructor(origin, leftOut) {
    this.origin = origin;
    this.leftOut = leftOut;
    this.gradients = 0;
    /** @type {Map<string, { up: number, down: number }>} */
    this.fonts = new Map();
    this.context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  }

  /** @param {DOMRect} box @returns {Place} */
  place({ left, top, width, height }) {
    return { x: left - this.origin.left, y: top - this.origin.top, width, height };
  }

  /** @param {Element} element @param {Element} into @param {number} opacity @param {DOMRect | null} [cut] the box that is seen, of one that scrolls */
  draw(element, into, opacity, cut = null) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden" || element.matches(this.leftOut)) return;
    const box = element.getBoundingClientRect(),
      own = opacity * Number(style.opacity);
    if (cut && (box.bottom < cut.top + 2 || box.top > cut.bottom - 2)) return;
    if (element instanceof SVGSVGElement) return into.append(this.drawing(element, box));
    if (element instanceof HTMLCanvasElement) return into.append(this.pixels(element, box, style));
    if (box.width && box.height) this.frame(style, this.place(box), into, own);
    let inside = into,
      seen = cut;
    const isCut = element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1;
    if (style.overflowX !== "visible" && style.display !== "inline" && isCut) {
      const { x, y, width, height } = this.place(box);
      seen = box;
      inside = shape("svg", { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}` });
      into.append(inside);
    }
    for (const child of element.childNodes) {
      if (child instanceof Element) this.draw(child, inside, own, seen);
      else if (child instanceof Text && child.data.trim()) this.write(child, style, inside, own);
    }
  }

  /** What is behind the words of an element. @param {CSSStyleDeclaration} style @param {Place} place @param {Element} into @param {number} opacity */
  frame(style, place, into, opacity) {
    const radius = parseFloat(style.borderTopLeftRadius) || 0;
    const ground = paintOf(style.backgroundColor);
    /** @param {Record<string, string | number>} look @param {number} [out] pixels around the element */
    const rect = (look, out = 0) => {
      const { x, y, width, height } = place;
      const around = { x: x - out, y: y - out, width: width + 2 * out, height: height + 2 * out, rx: radius + out };
      into.append(shape("rect", { ...around, ...look }));
    };
    if (ground.opacity) rect({ fill: ground.paint, "fill-opacity": ground.opacity * opacity });
    const gradient = style.backgroundImage.match(OF_A_LINEAR_GRADIENT);
    if (gradient) rect({ fill: this.gradient(gradient[1], into), opacity });
    for (const [, colour, size, inset] of style.boxShadow.matchAll(/((?:rgb|color)[^)]*\)) 0px 0px 0px ([\d.]+)px( inset)?/g)) {
      const { paint, opacity: strength } = paintOf(colour);
      const wide = inset ? Number(size) : 2;
      const look = { fill: "none", stroke: paint, "stroke-opacity": strength * opacity, "stroke-width": wide };
      rect(look, inset ? -wide / 2 : Number(size) - 1);
    }
    this.border(style, place, into, opacity);
  }

  /** The line around an element, else those on its right and below it. @param {CSSStyleDeclaration} style @param {Place} place @param {Element} into @param {number} opacity */
  border(style, { x, y, width, height }, into, opacity) {
    /** @param {string} side */
    const on = (side) => {
      const wide =
        style.getPropertyValue(`border-${side}-style`) === "none"
          ? 0
          : parseFloat(style.getPropertyValue(`border-${side}-width`));
      return { wide, ...paintOf(style.getPropertyValue(`border-${side}-color`)) };
    };
    const sides = ["top", "right", "bottom", "left"].map(on);
    const [top, right, bottom] = sides;
    if (top.wide && sides.every(({ wide, paint }) => wide === top.wide && paint === top.paint)) {
      const inner = { x: x + top.wide / 2, y: y + top.wide / 2, width: width - top.wide, height: height - top.wide };
      /** @type {Record<string, string>} */
      const dashes = style.borderTopStyle === "dashed" ? { "stroke-dasharray": `${3 * top.wide} ${2 * top.wide}` } : {};
      const look = { fill: "none", stroke: top.paint, "stroke-opacity": top.opacity * opacity, "stroke-width": top.wide };
      into.append(shape("rect", { ...inner, rx: parseFloat(style.borderTopLeftRadius) || 0, ...look, ...dashes }));
      return;
    }
    /** @param {typeof top} side @param {Place} line */
    const fill = (side, line) => {
      if (side.wide) into.append(shape("rect", { ...line, fill: side.paint, "fill-opacity": side.opacity * opacity }));
    };
    fill(right, { x: x + width - right.wide, y, width: right.wide, height });
    fill(bottom, { x, y: y + height - bottom.wide, width, height: bottom.wide });
  }

  /** @param {string} list @param {Element} into */
  gradient(list, into) {
    const id = `gradient-${this.gradients++}`;
    const stops = stopsOf(list).map(({ paint, opacity, place }) =>
      shape("stop", { offset: place, "stop-color": paint, "stop-opacity": opacity }),
    );
    into.append(shape("defs", {}, shape("linearGradient", { id }, ...stops)));
    return `url(#${id})`;
  }

  /** @param {HTMLCanvasElement} canvas @param {DOMRect} box @param {CSSStyleDeclaration} style */
  pixels(canvas, box, style) {
    const look = {
      href: inSquares(canvas, box.width).toDataURL(),
      preserveAspectRatio: "none",
      style: "image-rendering: pixelated",
    };
    const group = shape("g", { opacity: style.opacity }, shape("image", { ...this.place(box), ...look }));
    const wide = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
    if (wide) {
      const { paint, opacity } = paintOf(style.outlineColor);
      const line = { fill: "none", stroke: paint, "stroke-opacity": opacity, "stroke-width": wide };
      group.append(shape("rect", { ...this.place(box), ...line }));
    }
    return group;
  }

  /** A drawing of the page, with the looks that its style sheet gives it. @param {SVGSVGElement} svg @param {DOMRect} box */
  drawing(svg, box) {
    const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
    const copies = [copy, ...copy.querySelectorAll("*")];
    [svg, ...svg.querySelectorAll("*")].forEach((element, i) => {
      if (element.matches(this.leftOut)) copies[i].remove();
      const style = getComputedStyle(element);
      for (const name of element.getAttributeNames())
        if (/^(class|style|role|tabindex|aria-.*|data-.*)$/.test(name)) copies[i].removeAttribute(name);
      for (const name of LOOKS) copies[i].setAttribute(name, style.getPropertyValue(name));
    });
    setAttributes(copy, this.place(box));
    if (getComputedStyle(svg).overflow === "visible") copy.setAttribute("overflow", "visible");
    return copy;
  }

  /** The words of a text, a line each; they keep their widths in another font. @param {Text} node @param {CSSStyleDeclaration} style @param {Element} into @param {number} opacity */
  write(node, style, into, opacity) {
    const { paint, opacity: strength } = paintOf(style.color);
    const look = {
      fill: paint,
      "fill-opacity": strength * opacity,
      "font-family": style.fontFamily,
      "font-size": style.fontSize,
      "font-weight": style.fontWeight,
      "text-decoration": style.textDecorationLine,
    };
    if (style.writingMode.startsWith("vertical")) return into.append(this.turned(node, style, look));
    const font = this.fontOf(style);
    for (const { words, box } of linesOf(node)) {
      const { x, y, width, height } = this.place(box);
      const baseline = y + (height - font.up - font.down) / 2 + font.up;
      /** @type {Record<string, string | number>} */
      const fitted = [...words].length > 1 ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {};
      into.append(shape("text", { x, y: baseline, ...look, ...fitted }, words));
    }
  }

  /** A text that runs down, or up where it is turned around. @param {Text} node @param {CSSStyleDeclaration} style @param {Record<string, string | number>} look */
  turned(node, style, look) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const { x, y, width, height } = this.place(range.getBoundingClientRect());
    const place = `translate(${x + width / 2} ${y + height / 2}) rotate(${style.rotate === "180deg" ? -90 : 90})`;
    const middle = { "text-anchor": "middle", "dominant-baseline": "central", transform: place };
    return shape("text", { ...look, ...middle }, node.data);
  }

  /** How far a font reaches above and below its line. @param {CSSStyleDeclaration} style */
  fontOf({ fontWeight, fontSize, fontFamily }) {
    const font = `${fontWeight} ${fontSize} ${fontFamily}`;
    return remembered(this.fonts, font, () => {
      this.context.font = font;
      const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = this.context.measureText("x");
      return { up, down };
    });
  }
}

/** The same pixels, each as a square of several: programs that smooth pictures then blur only its edge. @param {HTMLCanvasElement} canvas @param {number} width on the page */
function inSquares(canvas, width) {
  const times = Math.max(1, Math.ceil((2 * width) / canvas.width)),
    large = document.createElement("canvas");
  Object.assign(large, { width: times * canvas.width, height: times * canvas.height });
  const context = /** @type {CanvasRenderingContext2D} */ (large.getContext("2d"));
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large;
}

/** The lines that a text is broken into on the page, and where each is. @param {Text} node */
function linesOf(node) {
  const range = document.createRange(),
    { whiteSpaceCollapse } = getComputedStyle(/** @type {Element} */ (node.parentElement));
  /** A part of the text as it is seen, with its box: where the page joins white space, joined. @param {number} from @param {number} to */
  const line = (from, to) => {
    const words = node.data.slice(from, to);
    return { words: whiteSpaceCollapse === "preserve" ? words : words.replace(/\s+/g, " "), box: boxOf(from, to) };
  };
  /** @param {number} from @param {number} to */
  const boxOf = (from, to) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect();
  };
  range.selectNodeContents(node);
  if (range.getClientRects().length < 2) return [line(0, node.length)];
  const places = [0];
  for (const character of node.data) places.push(places[places.length - 1] + character.length);
  /** @type {{ from: number, to: number }[]} */
  const lines = [];
  for (let i = 0; i + 1 < places.length; ) {
    const from = places[i],
      { width, height, bottom } = boxOf(from, places[++i]);
    if (width) {
      // The end of the line by halving: asking character after character takes seconds for a long text.
      for (let last = places.length - 1; i < last; ) {
        const middle = Math.ceil((i + last) / 2);
        if (boxOf(from, places[middle]).bottom < bottom + height / 2) i = middle;
        else last = middle - 1;
      }
      lines.push({ from, to: places[i] });
    } else if (lines.length) lines[lines.length - 1].to = places[i]; // what has no width belongs to the line before
  }
  return lines.map(({ from, to }) => line(from, to));
}

/**
 * Parts of a view as one drawing from (0, 0) on, and its size. Scroll boxes are copied as they are: to have all that is in one,
 * let it grow before.
 *
 * @param {Element[]} parts
 * @param {string} [leftOut] a selector of what is not copied; what is only read aloud never is
 */
export function copyOf(parts, leftOut = "") {
  const boxes = parts.filter((part) => part.checkVisibility()).map((part) => part.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)),
    top = Math.min(...boxes.map((box) => box.top));
  const copier = new Copier({ left, top }, [".aloud", "dialog", "[popover]", ...(leftOut ? [leftOut] : [])].join(", "));
  const drawing = shape("g");
  for (const part of parts) copier.draw(part, drawing, 1);
  const width = Math.max(...boxes.map((box) => box.right)) - left,
    height = Math.max(...boxes.map((box) => box.bottom)) - top;
  return { drawing, width, height };
}
