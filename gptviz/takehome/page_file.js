// Shows the views of a page that was taken home. There is no server: what is asked of one is answered by a sentence.

import { noteSizes } from "../components/page_helpers/paper.js";
import { bytesIn, inWords, mounted, partOf } from "./mounting.js";

// A file has no address that a view could read or write: it reads that of the page that it was on.
const page = /** @type {Record<symbol, unknown>} */ (/** @type {unknown} */ (globalThis));
const replace = history.replaceState.bind(history);
history.replaceState = (...given) => {
  try {
    replace(...given);
  } catch {
    /* the choice is simply not kept */
  }
};

/** @param {HTMLElement} host */
function explain(host) {
  const said = host.nextElementSibling;
  if (said?.classList.contains("explained")) return;
  const line = Object.assign(document.createElement("p"), {
    className: "caption explained",
    textContent: inWords("This file has no model: what needs a new computation works in gptviz only."),
  });
  line.setAttribute("role", "status");
  host.after(line);
}

/** @param {HTMLElement} view */
async function show(view) {
  const of = /** @type {HTMLElement | null} */ (view.closest("[data-address]"));
  const showIn = await mounted(view, view.dataset.view ?? "", () => explain(view));
  page[Symbol.for("gptviz address")] = of?.dataset.address ?? "";
  showIn(bytesIn(partOf(`data-${view.id}`).trim()));
  view.dataset.shown = "yes";
}

for (const figure of document.querySelectorAll(".figure")) {
  const { data, layout } = JSON.parse(document.getElementById(`data-${figure.id}`)?.textContent ?? "{}");
  // @ts-expect-error: plotly is in a separate script
  globalThis.Plotly.newPlot(figure, data, { ...layout, autosize: true }, { responsive: true, displaylogo: false });
  // @ts-expect-error: plotly has made it one of its own
  figure.on("plotly_afterplot", noteSizes);
}
addEventListener("beforeprint", noteSizes);

// What is folded has no width: a figure in it is drawn in its size when it is unfolded.
const unfolded = (/** @type {Event} */ event) => {
  const inside = /** @type {HTMLElement} */ (event.target).querySelectorAll(".figure");
  // @ts-expect-error: plotly is in a separate script
  for (const figure of inside) globalThis.Plotly.Plots.resize(figure);
};
document.addEventListener("toggle", unfolded, { capture: true });

// One after the other: each reads the address of its own page when it is shown. One that fails does not stop the others.
let shown = Promise.resolve();
for (const host of document.querySelectorAll("[data-view]")) {
  shown = shown.then(() => show(/** @type {HTMLElement} */ (host))).catch(reportError);
}
