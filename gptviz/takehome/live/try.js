// The page "Try it": a model, a prompt, and what the model makes of it, computed in the reader's browser (worker.js).

import { percent, shortened } from "../../components/kit/text.js";
import { valuesIn } from "../../components/kit/values.js";
import { unpack } from "../../components/kit/view.js";
import { mounted, partOf } from "../mounting.js";
import { Bench } from "./bench.js";
import { dropped, listed } from "./dropping.js";

/** @typedef {{ models: Record<string, string>, views: Record<string, { view: string, caption: string }>, keys: string[], app: string, fields: any, twins: Record<string, string>, trained: any, texts: Record<string, string>, version: string }} About `models`: the first prompt of each; `keys` of an address that are read; `fields` of a config; `twins`: the Python of each size, `texts` to learn from */

/** @type {About} */
const about = JSON.parse(partOf("about"));
const LATER = 150; // milliseconds after a letter was typed
const MOST_NAMED = 5; // pieces of a prompt that the vocabulary lacks
const PACE = 50; // milliseconds from one token of a playing text to the next
const LONGEST = 100_000; // letters of a prompt
const PLAIN = { temperature: 1, top_k: 0, top_p: 1, seed: 0 };
// What the address may say for this page; each view has its own keys.
const DECLARED = {
  model: { names: Object.keys(about.models) },
  view: { names: Object.keys(about.views) },
  position: { whole: /** @type {[number, number]} */ ([0, LONGEST]) },
  step: { whole: /** @type {[number, number]} */ ([0, 10 ** 9]) },
};
/** The models of the reader's own: the steps of their snapshots, and whether the last one is the model. @type {Map<string, { kept: number[], isRun: boolean }>} */
const own = new Map();
// As the controls of the app have it.
const OF_WRITING = /** @type {import("../../components/kit/values.js").Declared} */ ({
  temperature: { real: [0, 2] },
  top_k: { whole: [0, 100] },
  top_p: { real: [0.05, 1] },
  seed: { whole: [0, 99] },
});
const NAME_THEIR_OWN = ["next_token", "attention"]; // views that say themselves what they cannot show of the address
const query = () => new URLSearchParams(location.search);
/** The values in the address; of those with one key the first. */
const inAddress = () => Object.fromEntries([...query()].reverse());
const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector));
const [model, prompt, said, vain, link, caption, step] = ["#model", "#prompt", "#said", "#vain", "#app", "#caption", "#step"].map(
  find,
);
const worker = new Worker(URL.createObjectURL(new Blob([JSON.parse(partOf("worker"))])));

// The page is loaded when it shows something: who takes a picture of it, as the gallery does, waits for that.
const pending = Object.assign(document.createElement("iframe"), { hidden: true });
document.body.append(pending);
pending.contentDocument?.open();

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

/** What the address asks for, and what of it is not possible. */
function asked() {
  const of = inAddress();
  const { values, refused } = valuesIn(DECLARED, of),
    writing = valuesIn(OF_WRITING, of);
  const { model: name = DECLARED.model.names[0], view = DECLARED.view.names[0], position = null } = values;
  const { kept = [], isRun = false } = own.get(name) ?? {},
    newest = isRun ? (kept.at(-1) ?? null) : null;
  if (values.step !== undefined && !kept.includes(values.step)) refused.push(["step", String(values.step)]);
  const text = of.prompt ?? about.models[name],
    isLong = text.length > LONGEST;
  if (view === "generate") refused.push(...writing.refused);
  if (isLong) refused.push(["prompt", text]);
  refused.push(...Object.entries(of).filter(([key]) => key !== "view" && !about.keys.includes(key)));
  return {
    wanted: {
      model: name,
      view,
      position,
      step: kept.includes(values.step) ? values.step : newest,
      prompt: isLong ? about.models[name] : text,
    },
    sampling: /** @type {Record<string, number>} */ ({ ...PLAIN, ...writing.values }),
    refused,
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
  const { wanted, sampling } = asked();
  if (!known.has(wanted.model)) said.textContent = `Loading ${wanted.model} …`;
  // The files of a model come when it is chosen.
  const filesOf = (/** @type {string} */ name) =>
    new Promise((done, failed) => {
      const script = Object.assign(document.createElement("script"), {
        src: `models/${encodeURIComponent(name)}.js`,
        onerror: failed,
      });
      script.onload = () => done(JSON.parse(partOf(`model-${name}`)));
      document.head.append(script);
    });
  try {
    const files = known.has(wanted.model) ? undefined : await filesOf(wanted.model);
    known.add(wanted.model);
    worker.postMessage({ ...wanted, sampling, playing, ...more, files });
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
  const now = data.empty ? "Type a prompt: this one has nothing that the model reads." : sentence(data);
  if (said.textContent !== now) said.textContent = now; // what is said anew is read aloud anew
  find("#opening").hidden = (data.opened ?? null) === null;
  find("#opening progress").value = data.opened ?? 0;
  if (data.empty) return nameRefused({});
  shown.tokens ??= await placed("tokens", "token_strip", told);
  shown.tokens(data.tokens);
  if (shown.name !== view && data.payload) shown.view = await placed("view", view, told);
  if (!data.payload) find("#view").replaceChildren();
  shown.name = data.payload ? view : undefined;
  if (data.payload) shown.view?.(data.payload);
  nameRefused(data);
  document.body.dataset.shown = data.asked.view;
}

/** Name what the address asks for and is not shown. @param {{ asked?: any, payload?: Uint8Array, last?: number }} data an answer */
function nameRefused({ asked: done, payload, last = LONGEST }) {
  const { wanted, refused } = asked();
  const { position, ...declared } = payload && !NAME_THEIR_OWN.includes(done.view) ? unpack(payload).declared : {};
  const ofView = valuesIn(declared, inAddress()).refused;
  const past = (wanted.position ?? 0) > last ? [["position", String(wanted.position)]] : [];
  const all = [...refused, ...ofView, ...past];
  vain.textContent = all
    .map(([key, value]) => `The link asks for ${shortened(key, 40)} = “${shortened(value, 80)}”, which is not available here.`)
    .join(" ");
}

/** The answer that was awaited is there, or will not come: ask for what was wanted meanwhile. */
function settle() {
  const { next } = waiting;
  Object.assign(waiting, { isBusy: false, next: null });
  pending.contentDocument?.close();
  if (next) ask(next);
  return next !== null;
}

/** Show a model of the reader's own among the others, and open it. @param {{ name: string, prompt: string, kept: number[] }} opened @param {boolean} isRun */
function add({ name, prompt: first, kept }, isRun) {
  const before = own.get(name);
  own.set(name, { kept, isRun });
  if (!before) {
    known.add(name);
    about.models[name] = first;
    DECLARED.model.names.push(name);
    model.append(Object.assign(document.createElement("option"), { textContent: name }));
    choose({ model: name, prompt: null, position: null, step: null });
  } else if (before.kept.length < kept.length && asked().wanted.model === name) {
    presentSteps();
    if (!query().has("step")) ask();
  }
}

worker.onmessage = async ({ data }) => {
  if (data.run) {
    bench.show(data.run);
    add(data.run, true);
  }
  if (data.own) {
    find("#opened").textContent = `${data.own.name} is open: it is in the list of models now, until this page is closed.`;
    add(data.own, false);
  }
  if (data.refused) {
    find(bench.isWaiting ? "#learned" : "#opened").textContent = `This does not work: ${data.refused}.`;
    if (bench.isWaiting) bench.refuse();
  }
  if (data.saved) save(data.saved);
  if (!data.asked) return;
  const isTaken = data.prompt !== undefined;
  const why = (/** @type {Error} */ error) => (said.textContent = `This cannot be shown: ${error.message}`);
  if (waiting.next === null && !isTaken) await show(data).catch(why);
  if (settle()) return;
  if (isTaken) choose({ prompt: data.prompt, position: null });
  else if (typeof data.opened === "number") ask();
  else if (playing && (data.isAtEnd || data.asked.view !== "generate")) play(false);
  else if (playing) setTimeout(() => playing && ask({ act: "step" }), PACE);
};
worker.onerror = (event) => fail(event.message);

/** @param {string} why */
function fail(why) {
  said.textContent = `This cannot be computed: ${why}`;
  settle();
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
  const { wanted: now, sampling } = asked();
  model.value = now.model;
  if (prompt.value !== now.prompt) prompt.value = now.prompt;
  for (const button of document.querySelectorAll("#views button")) {
    button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.view === now.view));
  }
  presentSteps();
  find("#in_app").hidden = own.has(now.model);
  find("#writing").hidden = now.view !== "generate";
  for (const input of settings) input.value = String(sampling[input.name]);
  lead();
}

/** Bring the steps in line with the address: of a model that is trained they grow, while a reader types. */
function presentSteps() {
  const { wanted: now } = asked();
  const { kept = [], isRun = false } = own.get(now.model) ?? {},
    steps = isRun ? kept : [...kept, null];
  find("#steps").hidden = !kept.length;
  step.max = String(steps.length - 1);
  step.value = String(steps.indexOf(now.step));
  find("#steps output").textContent = now.step === null ? "the end" : String(now.step);
  step.setAttribute("aria-valuetext", find("#steps output").textContent);
}

/** Let the link lead to the page of the app that shows the same. */
function lead() {
  const { wanted: now } = asked(),
    choices = query();
  choices.delete("view");
  choices.set("model", now.model);
  choices.set("prompt", now.prompt);
  link.href = `${about.app}/${now.view}?${choices}`;
}

model.onchange = () => choose({ model: model.value, prompt: null, position: null, step: null });
step.oninput = () => {
  const { kept, isRun } = /** @type {{ kept: number[], isRun: boolean }} */ (own.get(asked().wanted.model)),
    isLast = Number(step.value) === kept.length - Number(isRun);
  choose({ step: isLast ? null : String(kept[Number(step.value)]) });
};

const bench = new Bench(about, (message) => worker.postMessage(message));
worker.postMessage({ names: Object.keys(about.models) });

/** Hand a file to the reader. @param {{ file: string, bytes: Uint8Array }} saved */
function save({ file, bytes }) {
  const href = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (bytes)], { type: "application/zip" }));
  Object.assign(document.createElement("a"), { href, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** Open the files of a model. @param {Promise<{ path: string, file: Blob }[]>} files */
async function open(files) {
  find("#opened").textContent = "Opening …";
  try {
    worker.postMessage({ open: await files, fields: about.fields, prompt: prompt.value });
  } catch (error) {
    find("#opened").textContent = `This does not work: ${/** @type {Error} */ (error).message}.`;
  }
}
const chosen = find("#file");
chosen.onchange = () => {
  if (chosen.files.length) open(Promise.resolve(listed(chosen.files)));
  chosen.value = "";
};
addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
addEventListener("drop", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  open(dropped(event.dataTransfer));
});
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
  input.addEventListener("change", () => input.reportValidity() && choose({ [input.name]: String(input.valueAsNumber) }));
}
window.addEventListener("popstate", () => choose({}));
present();
ask();
