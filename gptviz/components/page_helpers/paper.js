// On paper, what was drawn for the window is as wide as the sheet: style sheets make it smaller by how large it was drawn.

/** Note how wide figures of plotly and views made by hand are drawn, and how large type and window are: for print.css and kit.css. */
export function noteSizes() {
  const page = document.documentElement;
  page.style.setProperty("--drawn-rem", getComputedStyle(page).fontSize);
  page.style.setProperty("--drawn-height", `${innerHeight}px`);
  const views = [...document.querySelectorAll("*")].map((one) => one.shadowRoot?.querySelector(".root"));
  for (const drawn of [...document.querySelectorAll(".svg-container"), ...views]) {
    if (drawn instanceof HTMLElement && drawn.offsetWidth) drawn.style.setProperty("--drawn", `${drawn.offsetWidth}px`);
  }
}

/** @param {unknown} _view @param {AbortSignal} signal */
export const paper = (_view, signal) => addEventListener("beforeprint", noteSizes, { signal });
