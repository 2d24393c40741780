// Shows the views of a page that was taken home. There is no server: what is asked of one is answered by a sentence.

/** @param {string} text */
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// A file has no address of its own that a view could read or write.
const page = /** @type {Record<symbol, unknown>} */ (/** @type {unknown} */ (globalThis));
page[Symbol.for("gptviz address")] = document.documentElement.dataset.address;
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
    textContent: "This file has no model: what needs a new computation works in gptviz only.",
  });
  line.setAttribute("role", "status");
  host.after(line);
}

for (const host of document.querySelectorAll("[data-view]")) {
  const view = /** @type {HTMLElement} */ (host);
  const part = (/** @type {string} */ name) => document.getElementById(name)?.textContent ?? "";
  const script = JSON.parse(part(`script-${view.dataset.view}`));
  const style = JSON.parse(part(`style-${view.dataset.view}`));
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  import(url).then((module) => {
    const parentElement = view.attachShadow({ mode: "open" });
    parentElement.append(
      Object.assign(document.createElement("style"), { textContent: style }),
      Object.assign(document.createElement("div"), { className: "root" }),
    );
    const send = () => explain(view);
    module.default({
      name: view.id,
      key: view.id,
      data: bytes(part(`data-${view.id}`).trim()),
      parentElement,
      setTriggerValue: send,
      setStateValue: send,
    });
    view.dataset.shown = "yes";
  });
}

for (const figure of document.querySelectorAll(".figure")) {
  const { data, layout } = JSON.parse(document.getElementById(`data-${figure.id}`)?.textContent ?? "{}");
  // @ts-expect-error: plotly is in a script of its own
  globalThis.Plotly.newPlot(figure, data, { ...layout, autosize: true }, { responsive: true, displaylogo: false });
}
