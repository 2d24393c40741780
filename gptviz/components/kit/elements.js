// Elements of a page or a drawing. Text of a model or a user is a text node or an attribute, never markup.

export const SVG = "http://www.w3.org/2000/svg";

/** An element with a class, a text and attributes; a button is no submit button. */
export function make(tag, className = "", text = undefined, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (tag === "button") element.type = "button";
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** An element of a drawing; children are elements or text. */
export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
