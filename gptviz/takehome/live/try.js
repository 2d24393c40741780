// The page "Try it": a model, a prompt, and what the model makes of it, computed in the reader's browser (worker.js).

import { percent } from "../../components/kit/text.js";
import { mounted, partOf } from "../mounting.js";

/** @typedef {{ models: Record<string, string>, views: Record<string, { view: string, caption: string }>, app: string }} About `models`: the first prompt of each */

/** @type {About} */
const about = JSON.parse(partOf("about"));
const LATER = 150; // milliseconds after a letter was typed
const MOST_NAMED = 5; // pieces of a prompt that the vocabulary lacks
const PACE = 50; // milliseconds from one token of a playing text to the next
const PLAIN = { temperature: 1, top_k: 0, top_p: 1, seed: 0 };
const query = () => new URLSearchParams(location.search);
const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector));
const [model, prompt, said, link, caption] = ["#model", "#prompt", "#said", "#app", "#caption"].map(find);
const worker = new Worker(URL.createObjectURL(new Blob([JSON.parse(partOf("worker"))])));

// A view puts back what it wrote into the address and finds changed: here nobody but this page and its views write there.
/** @type {any} */ (globalThis).navigation?.addEventListener("currententrychange", (/** @type {Event} */ event) =>
  event.stopImmediatePropagation(),
);

// The link to the app follows what this page and its views write. A browser that refuses an address does not keep the choice.
const replace = history.replaceState.bind(history);
history.replaceState = (...given) => {
  try {
    replace(...given);
    lead();
  } catch (error) {
    console.warn(error);
  }
};

let playing = false;
const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("#writing button"));
const settings = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("#writing input"));

/** Let the text grow by itself, or stop it. @param {boolean} goes */
function play(goes) {
  playing = goes;
  buttons[0].textContent = goes ? "Pause" : "Play";
}

/** What the address asks for. */
function asked() {
  const of = query(),
    name = of.get("model") ?? "",
    view = of.get("view") ?? "";
  const chosen = name in about.models ? name : Object.keys(about.models)[0];
  return {
    model: chosen,
    prompt: of.get("prompt") ?? about.models[chosen],
    view: view in about.views ? view : Object.keys(about.views)[0],
    position: of.has("position") ? Number(of.get("position")) : null,
    sampling: Object.fromEntries(Object.entries(PLAIN).map(([key, usual]) => [key, Number(of.get(key) ?? usual)])),
    playing,
  };
}

const known = new Set();
/** Whether an answer is awaited, and what was asked for meanwhile. */
const waiting = { isBusy: false, next: /** @type {Record<string, unknown> | null} */ (null) };

/** Ask for what the address says; at most one answer is awaited. @param {Record<string, unknown>} [more] */
async function ask(more = {}) {
  if (waiting.isBusy) {
    waiting.next = more;
    return;
  }
  waiting.isBusy = true;
  const wanted = asked();
  said.textContent = known.has(wanted.model) ? "" : `Loading ${wanted.model} …`;
  // The files of a model come when it is chosen.
  const filesOf = (/** @type {string} */ name) =>
    new Promise((done, failed) => {
      const script = Object.assign(document.createElement("script"), { src: `models/${name}.js`, onerror: failed });
      script.onload = () => done(JSON.parse(partOf(`model-${name}`)));
      document.head.append(script);
    });
  try {
    const files = known.has(wanted.model) ? undefined : await filesOf(wanted.model);
    known.add(wanted.model);
    worker.postMessage({ ...wanted, ...more, files });
  } catch {
    fail(`the file models/${wanted.model}.js is not here`);
  }
}

/** @type {{ tokens?: (data: Uint8Array) => void, view?: (data: Uint8Array) => void, name?: string }} */
const shown = {};

/** A new place for a view. @param {string} id @param {string} view @param {import("../mounting.js").Send} send */
function placed(id, view, send) {
  const place = find(`#${id}`);
  place.replaceChildren(Object.assign(document.createElement("div"), { id: view }));
  return mounted(place.firstChild, view, send);
}

/** What a reader did in a view. @param {string} event @param {any} value */
function told(event, value) {
  if (event === "take" && !("at" in value)) return ask({ act: "append", token: value.token });
  if (["go", "take", "attend"].includes(event)) {
    play(false);
    ask({ act: event, ...value });
  }
  if (event === "pick") choose({ position: String(value.at), view: "next_token" });
  if (event === "open") said.textContent = "The app shows what else is likely in this cell: see “Open in the app”.";
}

/** Show an answer. @param {any} data */
async function show(data) {
  const { view, caption: words } = about.views[data.asked.view];
  caption.textContent = words;
  said.textContent = data.empty ? "Type a prompt: this one has nothing that the model reads." : sentence(data);
  if (data.empty) return;
  shown.tokens ??= await placed("tokens", "token_strip", told);
  shown.tokens(data.tokens);
  if (shown.name !== view && data.payload) shown.view = await placed("view", view, told);
  if (!data.payload) find("#view").replaceChildren();
  shown.name = data.payload ? view : undefined;
  if (data.payload) shown.view?.(data.payload);
  document.body.dataset.shown = data.asked.view;
}

worker.onmessage = async ({ data }) => {
  const isOld = waiting.next !== null || data.prompt !== undefined;
  if (!isOld) await show(data);
  const { next } = waiting;
  Object.assign(waiting, { isBusy: false, next: null });
  if (data.prompt !== undefined) choose({ prompt: data.prompt, position: null });
  else if (next) ask(next);
  else if (playing && (data.isAtEnd || data.asked.view !== "generate")) play(false);
  else if (playing) setTimeout(() => playing && ask({ act: "step" }), PACE);
};
worker.onerror = (event) => fail(event.message);

/** @param {string} why */
function fail(why) {
  waiting.isBusy = false;
  said.textContent = `This cannot be computed: ${why}`;
}

/** @param {any} answer */
function sentence({ payload, missing, lacking, likeliest: { before, label, probability } }) {
  if (!payload) return "This model has no blocks and therefore no attention.";
  const cut = missing ? ` The first ${missing} tokens of the prompt do not fit into its context: it does not read them.` : "";
  const unknown = lacking.length
    ? ` Not in its vocabulary, so it reads another token instead: ${lacking.slice(0, MOST_NAMED).join(" ")}.`
    : "";
  return `After “${before}” the model’s guess is “${label}”, with ${percent(probability)}.${cut}${unknown}`;
}

/** @param {Record<string, string | null>} values for the address; null takes a key out of it */
function choose(values) {
  const url = new URL(location.href);
  for (const [key, value] of Object.entries(values))
    value === null ? url.searchParams.delete(key) : url.searchParams.set(key, value);
  history.replaceState(null, "", url);
  present();
  ask();
}

/** Bring the controls in line with the address. */
function present() {
  const now = asked();
  model.value = now.model;
  if (prompt.value !== now.prompt) prompt.value = now.prompt;
  for (const button of document.querySelectorAll("#views button")) {
    button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.view === now.view));
  }
  find("#writing").hidden = now.view !== "generate";
  for (const input of settings) input.value = String(now.sampling[input.name]);
  lead();
}

/** Let the link lead to the page of the app that shows the same. */
function lead() {
  const now = asked(),
    choices = query();
  choices.delete("view");
  choices.set("model", now.model);
  choices.set("prompt", now.prompt);
  link.href = `${about.app}/${now.view}?${choices}`;
}

model.onchange = () => choose({ model: model.value, prompt: null, position: null });
/** @type {ReturnType<typeof setTimeout>} */
let typed;
prompt.oninput = () => {
  clearTimeout(typed);
  typed = setTimeout(() => choose({ prompt: prompt.value, position: null }), LATER);
};
for (const button of document.querySelectorAll("#views button")) {
  button.addEventListener("click", () => choose({ view: /** @type {HTMLElement} */ (button).dataset.view ?? null }));
}
for (const button of buttons) {
  button.addEventListener("click", () => {
    const act = button.name === "play" ? "step" : button.name;
    play(button.name === "play" && !playing);
    ask(button.name === "play" && !playing ? {} : { act });
  });
}
for (const input of settings) {
  input.addEventListener("change", () => input.checkValidity() && choose({ [input.name]: String(input.valueAsNumber) }));
}
window.addEventListener("popstate", () => choose({}));
present();
ask();
