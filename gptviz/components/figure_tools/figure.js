// A figure of plotly as one drawing: its layers, which lie on top of each other on the page.

import { copyOf } from "../kit/copy.js";
import { shape } from "../kit/elements.js";

// Drawings and pixels; plotly finds what is under the pointer by a layer that is not seen.
const LAYERS = ".svg-container > .main-svg, .gl-container canvas:not(.gl-canvas-pick)";
// What only the pointer needs.
const FOR_THE_POINTER = ".hoverlayer, .zoomlayer, .draglayer, .selectionlayer";

/**
 * What stands in 3-D: plotly keeps it in its own object, since a canvas forgets its pixels.
 *
 * @typedef {{ container: Element, toImage: (format: string) => string }} Scene
 */

/** The figure in the same container as an element of a view. @param {Element} element @returns {Element | null} */
export function figureBeside(element) {
  const root = element.getRootNode();
  let around = root instanceof ShadowRoot ? root.host.parentElement : element.parentElement;
  while (around) {
    const found = around.querySelector(".js-plotly-plot");
    if (found) return found;
    around = around.parentElement;
  }
  return null;
}

/** @param {Record<string, { _scene?: Scene }>} layout as plotly has filled it in */
export function scenesOf(layout) {
  return Object.keys(layout).flatMap((name) => (/^scene\d*$/.test(name) ? (layout[name]._scene ?? []) : []));
}

/** The figure as a drawing that stands alone, and its size. @param {Element} plot */
export function drawingOf(plot) {
  const copy = copyOf([...plot.querySelectorAll(LAYERS)], FOR_THE_POINTER);
  const layout = /** @type {any} */ (plot)._fullLayout ?? {};
  const { left, top } = /** @type {Element} */ (plot.querySelector(".main-svg")).getBoundingClientRect();
  for (const scene of scenesOf(layout)) {
    const box = scene.container.getBoundingClientRect();
    const place = { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
    copy.drawing.prepend(shape("image", { ...place, href: scene.toImage("png") }));
  }
  return copy;
}
