// A button "⋯" that opens a small menu above the page: what is done with a figure, out of its way until it is asked for.

import { make } from "./elements.js";
import { Floating, under } from "./floating.js";

/**
 * The button and its menu. The menu opens with the focus on its first item; the arrow keys walk it, and it shuts with Escape, with a
 * press beside it, and before an item acts, which gives the focus back to the button.
 *
 * @param {HTMLButtonElement[]} items
 */
export function more(items) {
  const label = `More: ${items.map((item) => item.textContent).join(", ")}`;
  const button = make("button", "tool", "⋯", { "aria-label": label, title: label, "aria-haspopup": "menu" });
  const menu = new Floating("menu");
  menu.element.popover = "auto"; // Escape and a press beside it shut it
  menu.element.role = "menu";
  menu.element.ariaLabel = label;
  menu.element.append(...items);
  for (const item of items) {
    item.role = "menuitem";
    item.tabIndex = -1;
    item.addEventListener("click", () => menu.close(), { capture: true });
  }
  const follow = () => (menu.isOpen ? menu.open(button, under) : removeEventListener("scroll", follow, true));
  button.ariaExpanded = "false";
  button.popoverTargetElement = menu.element; // a press on it is not one beside the menu
  button.onclick = (event) => {
    event.preventDefault();
    if (menu.isOpen) return menu.close();
    menu.open(button, under);
    addEventListener("scroll", follow, true);
    items[0].focus({ preventScroll: true });
  };
  menu.element.addEventListener("beforetoggle", ({ newState }) => {
    button.ariaExpanded = String(newState === "open");
    if (menu.element.matches(":focus-within")) button.focus({ preventScroll: true }); // the browser forgets it within a view
  });
  menu.element.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the keys of the view are not meant
    if (event.key === "Tab") menu.close();
    const at = items.findIndex((item) => item.matches(":focus"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items.at(to % items.length)?.focus({ preventScroll: true });
  });
  return make("div", "tools", [button, menu.element]);
}
