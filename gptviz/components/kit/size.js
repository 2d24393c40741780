// The size of type, by which all that is measured in pixels grows with the page: see page.css.

// Pixels of one rem where a page has its usual size.
export const USUAL = 16;

/** The pixels of one rem on this page: 16, and more on a large screen. */
export function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || USUAL;
}
