// "Train your own": what is learned, how large the model is, Start and Stop, the curve of the loss, and what the model writes.

import { make, shape } from "../../components/kit/elements.js";
import { ROLES } from "../../components/kit/roles.js";

/** @typedef {{ name: string, step: number, steps: number, losses: number[], evaluations: { step: number, validation: number }[], samples: { step: number, texts: string[] }[], seconds: number, isOver: boolean, parameters: number, dropped: number, size: { vocab_size: number, n_layer: number } }} Report of a run */

const HEIGHT = 220;
const MARGIN = { left: 48, right: 12, top: 28, bottom: 40 };
const SMALLEST = 260; // pixels across
const TIMED = 5; // steps after which it is said how long the rest takes
const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector));

/** A number of seconds as a person says it. @param {number} seconds */
const spoken = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`);

export class Bench {
  /** @param {{ texts: Record<string, string>, twins: Record<string, string>, trained: any, version: string }} about @param {(message: any) => void} send to the worker */
  constructor(about, send) {
    this.about = about;
    this.send = send;
    this.isWaiting = false; // for the first report of a run
    /** @type {Report | null} */
    this.last = null;
    const [kind, text] = ["#kind", "#material"].map(find);
    /** What was typed, so that looking at another choice loses nothing. @type {Record<string, string>} */
    this.typed = { ...about.texts };
    this.kind = kind.value;
    text.value = this.typed[this.kind] ?? "";
    kind.onchange = () => {
      this.typed[this.kind] = text.value;
      this.kind = kind.value;
      text.value = this.typed[this.kind] ?? "";
    };
    find("#train").onclick = () => this.start();
    find("#halt").onclick = () => this.last && send({ stop: this.last.name });
    find("#keep").onclick = () => this.last && send({ save: { name: this.last.name, version: about.version } });
    find("#twin").onclick = () =>
      this.last && send({ save: { name: this.last.name, version: about.version, source: this.source } });
    new ResizeObserver(() => this.last && this.draw(this.last)).observe(find("#curve"));
  }

  start() {
    const [kind, size, steps, text] = ["#kind", "#size", "#count", "#material"].map(find);
    if (!steps.reportValidity()) return;
    const isList = kind.value !== "text";
    this.isWaiting = true;
    this.source = this.about.twins[`${size.value} ${isList ? "list" : "text"}`];
    this.what = kind.selectedOptions[0].dataset.of;
    find("#train").disabled = true;
    find("#learned").textContent = "";
    find("#pace").textContent = "Beginning …";
    const { trained } = this.about,
      sizes = { ...trained.sizes[size.value], ...trained.common };
    const asked = { name: `my-${kind.value}`, text: text.value, isList, sizes, steps: steps.valueAsNumber, seed: 0 };
    this.send({ learn: asked });
  }

  /** Another run may begin: this one did not. */
  refuse() {
    this.isWaiting = false;
    find("#pace").textContent = "";
    find("#train").disabled = false;
  }

  /** @param {Report} report */
  show(report) {
    this.isWaiting = false;
    this.last = report;
    const { step, steps, isOver, seconds, evaluations, dropped, parameters, size, samples } = report;
    find("#train").disabled = !isOver;
    find("#halt").hidden = isOver;
    find("#kept").hidden = !isOver;
    const progress = find("#going");
    Object.assign(progress, { hidden: isOver, max: steps, value: step });
    const [{ validation }] = evaluations.slice(-1),
      blind = Math.log(size.vocab_size),
      left = step >= TIMED ? `, about ${spoken((seconds / step) * (steps - step))} left` : "";
    const rare = dropped ? ` ${dropped} rare characters are left out of it.` : "";
    const about = `${parameters.toLocaleString("en-US")} parameters, ${size.n_layer} block${size.n_layer > 1 ? "s" : ""}.${rare}`;
    const result = `After ${step} step${step === 1 ? "" : "s"} the loss on held-out ${this.what} is ${validation.toFixed(2)} nats per character; guessing blindly has ${blind.toFixed(2)}.`;
    find("#pace").textContent = isOver ? "" : `Step ${step} of ${steps}${left}`;
    find("#learned").textContent = isOver ? result : ""; // read aloud once, at the end
    find("#facts").textContent = `${report.name}: ${about}`;
    find("#legend").hidden = false;
    this.draw(report);
    const rows = samples.map(({ step: at, texts }) =>
      make("li", "", [make("b", "", `Step ${at}: `), make("code", "", texts.map((text) => text || "—").join(" · "))]),
    );
    find("#samples").replaceChildren(...rows.reverse());
  }

  /** The loss over the steps, of each batch and of what is held out. @param {Report} report */
  draw({ losses, evaluations, steps, size }) {
    const host = find("#curve"),
      width = Math.max(SMALLEST, host.clientWidth),
      blind = Math.log(size.vocab_size),
      most = Math.max(blind, ...losses, ...evaluations.map(({ validation }) => validation)) * 1.05;
    const x = (/** @type {number} */ step) => MARGIN.left + (step / steps) * (width - MARGIN.left - MARGIN.right),
      y = (/** @type {number} */ loss) => HEIGHT - MARGIN.bottom - (loss / most) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    const points = (/** @type {[number, number][]} */ all) =>
      all.map(([step, loss]) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
    const text = (/** @type {string} */ words, /** @type {number} */ at, /** @type {number} */ height, anchor = "middle") =>
      shape("text", { x: at, y: height, "text-anchor": anchor }, words);
    const ticks = Array.from({ length: Math.floor(most) + 1 }, (_, loss) => loss);
    const held = evaluations.map(({ step, validation }) => /** @type {[number, number]} */ ([step, validation]));
    const drawing = shape(
      "svg",
      {
        width,
        height: HEIGHT,
        role: "img",
        "aria-label": `The loss over ${losses.length} steps: ${evaluations.length} tests on what is held out`,
      },
      ...ticks.flatMap((loss) => [
        shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(loss), y2: y(loss) }),
        text(String(loss), MARGIN.left - 6, y(loss) + 4, "end"),
      ]),
      ...[0, steps].map((step) => text(String(step), x(step), HEIGHT - MARGIN.bottom + 16, step ? "end" : "middle")),
      text("loss in nats per character", 0, 12, "start"),
      text("steps of training", (MARGIN.left + width) / 2, HEIGHT - 8),
      shape("line", { class: "blind", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(blind), y2: y(blind) }),
      text("guessing blindly", width - MARGIN.right, y(blind) + 14, "end"),
      shape("polyline", { class: "batches", points: points(losses.map((loss, step) => [step, loss])) }),
      shape("polyline", { class: "held", points: points(held) }),
      ...held.map(([step, loss]) => shape("circle", { cx: x(step), cy: y(loss), r: 3, fill: ROLES.output })),
    );
    host.replaceChildren(drawing);
  }
}
