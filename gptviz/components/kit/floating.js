// A card that floats above the page, next to the thing that it is about.

import { make } from "./elements.js";

// Pixels that stay free at the edges of the window.
const EDGE = 8;
// How far the top of a card stands above that of the thing that it stands beside.
const ABOVE = 40;

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box @typedef {{ width: number, height: number }} Size */

/**
 * Where a card stands under a box without a gap, so that the pointer reaches it; above where there is no room.
 *
 * @param {Box} box
 * @param {Size} card
 * @param {Size} page
 */
export function under(box, card, page) {
  const isAbove = box.bottom + card.height > page.height - EDGE && box.top - card.height > EDGE;
  return {
    left: clamp(box.left, page.width - card.width - EDGE),
    top: clamp(isAbove ? box.top - card.height : box.bottom, page.height - card.height - EDGE),
  };
}

/**
 * Where a card stands at the right of `edge`, left of the box where there is no room; its top a little above that of the box.
 *
 * @param {Box} box
 * @param {Size} card
 * @param {Size} page
 * @param {{ edge?: number }} [how]
 */
export function beside(box, card, page, { edge = box.right } = {}) {
  const hasRoom = edge + card.width + 2 * EDGE < page.width;
  return {
    left: clamp(hasRoom ? edge + EDGE : box.left - card.width - EDGE, page.width - card.width - EDGE),
    top: clamp(box.top - ABOVE, page.height - card.height - EDGE),
  };
}

/** @param {number} place @param {number} most */
function clamp(place, most) {
  return Math.max(EDGE, Math.min(place, most));
}

/** The card. Its place is given by one of the functions above. */
export class Floating {
  /** @param {string} [look] a class of its own */
  constructor(look = "card") {
    this.element = make("div", `${look} floating`);
    this.element.popover = "manual"; // above everything, cut off by nothing
  }

  get isOpen() {
    return this.element.matches(":popover-open");
  }

  /**
   * Show the card, filled before, next to an element.
   *
   * @template {object} How
   * @param {Element} element
   * @param {(box: Box, card: Size, page: Size, how?: How) => { left: number, top: number }} where
   * @param {How} [how]
   */
  open(element, where, how) {
    if (!this.isOpen) this.element.showPopover();
    const { offsetWidth: width, offsetHeight: height, style } = this.element;
    const page = { width: innerWidth, height: innerHeight };
    const { left, top } = where(element.getBoundingClientRect(), { width, height }, page, how);
    style.left = `${left}px`;
    style.top = `${top}px`;
  }

  close() {
    if (this.isOpen) this.element.hidePopover();
  }
}
