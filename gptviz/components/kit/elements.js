// Elements of a page or a drawing. Text of a model or a user is a text node or an attribute, never markup.

export const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Record<string, string | number | boolean>} Attributes */

/** Write attributes. @template {Element} One @param {One} element @param {Attributes} attributes @returns {One} */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/**
 * An element with a class, a text or children, and attributes; a button is no submit button.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string | (Node | string)[]} [content]
 * @param {Attributes} [attributes]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, className = "", content = [], attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (element instanceof HTMLButtonElement) element.type = "button";
  if (content.length) element.append(...[content].flat());
  return setAttributes(element, attributes);
}

/** A button that acts when it is pressed. @param {string} label @param {(event: MouseEvent) => unknown} act @param {Attributes} [attributes] */
export function button(label, act, attributes = {}) {
  const made = make("button", "tool", label, attributes);
  made.onclick = act;
  return made;
}

/**
 * An element of a drawing; children are elements or text.
 *
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {(Node | string)[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function shape(tag, attributes = {}, ...children) {
  const element = setAttributes(document.createElementNS(SVG, tag), attributes);
  element.append(...children);
  return element;
}

/** What has the focus in the view that an element is in. @param {Element} element */
export function focusedBeside(element) {
  const { activeElement } = /** @type {Document | ShadowRoot} */ (element.getRootNode());
  return /** @type {HTMLElement | null} */ (activeElement);
}

/**
 * The nearest element that a selector finds: the one that an event happened in, or one around it.
 *
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function closest({ target }, selector) {
  return target instanceof Element ? target.closest(selector) : null;
}

/** Whether what is typed there is a text or a value, so that its keys are its own. @param {EventTarget | null} target */
export function isTyping(target) {
  const element = /** @type {HTMLElement | null} */ (target);
  return Boolean(element?.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable=true]"));
}

/**
 * The box of an element on the screen. WebKit measures what is within something enlarged (`zoom`) in units that are enlarged too.
 *
 * @param {Element} element
 */
export function boxOf(element) {
  const box = element.getBoundingClientRect();
  if ("currentCSSZoom" in Element.prototype) return box;
  let zoom = 1;
  for (let at = /** @type {Element | null} */ (element); at; at = at.parentElement)
    zoom *= Number(getComputedStyle(at).zoom) || 1;
  return new DOMRect(zoom * box.x, zoom * box.y, zoom * box.width, zoom * box.height);
}

/**
 * Scroll `box` until `element` in it is seen, with some pixels to spare. `scrollIntoView` would move the whole page too.
 *
 * @param {Element} element
 * @param {Element} box
 * @param {number} [margin]
 */
export function bringIntoView(element, box, margin = 4) {
  const inner = boxOf(element),
    outer = boxOf(box);
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + margin;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + margin;
  if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left + margin;
  else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right + margin;
}

/** The one of many elements that the Tab key stops at; arrow keys walk the others, which have `tabIndex = -1`. */
export class TabStop {
  constructor() {
    /** @type {HTMLElement | SVGElement | null} */
    this.element = null;
  }

  /** Let the Tab key stop at `element`. @param {HTMLElement | SVGElement | null | undefined} element */
  reach(element) {
    if (this.element && this.element !== element) this.element.tabIndex = -1;
    this.element = element ?? null;
    if (element) element.tabIndex = 0;
  }

  /**
   * Let the Tab key stop at `element`, give it the focus, and bring it into view in the boxes that scroll around it.
   *
   * @param {HTMLElement | SVGElement | null | undefined} element
   * @param {Element[]} boxes the inner before the outer
   */
  focus(element, ...boxes) {
    if (!element) return;
    this.reach(element);
    element.focus({ preventScroll: true });
    for (const box of boxes) bringIntoView(element, box);
  }
}
