// The current path once more, token by token.
import { button, make } from "../kit/elements.js";
import { count } from "../kit/text.js";

const PACE = 320; // milliseconds a token

/** The buttons and the slider of a replay. */
export class Replay {
  /** @param {() => void} moved called when it stands at another token */
  constructor(moved) {
    this.moved = moved;
    /** @type {number[]} */
    this.path = [];
    /** @type {number | null} */
    this.step = null; // the place on the path that it stands at
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    /** @param {string} label @param {string} title @param {() => void} act */
    const named = (label, title, act) => button(label, act, { title, "aria-label": title });
    this.start = named("▷ Replay", "Replay the path, token by token", () => this.startOrStop());
    this.back = named("‹", "Replay: a token back", () => this.stepTo((this.step ?? this.path.length) - 1));
    this.forth = named("›", "Replay: a token forward", () => this.stepTo((this.step ?? -1) + 1));
    const look = { type: "range", min: "1", step: "1", "aria-label": "Replay: token" };
    this.slider = make("input", "slider", undefined, look);
    this.slider.oninput = () => this.stepTo(Number(this.slider.value) - 1);
    this.where = make("span", "small where number");
    const parts = [this.start, this.back, this.slider, this.forth, this.where];
    this.element = make("div", "aligned player", parts, { role: "group", "aria-label": "Replay the current path" });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stepTo(null);
      event.stopPropagation(); // the page's own keys must not see them
    });
  }

  /** The node that it stands at, null while there is no replay. */
  get node() {
    return this.step === null ? null : this.path[this.step];
  }

  /** The nodes that have not come yet. */
  get later() {
    return this.step === null ? [] : this.path.slice(this.step + 1);
  }

  /** Take another path; one that `isNew` ends the replay. @param {number[]} path @param {boolean} isNew */
  take(path, isNew) {
    this.path = path;
    if (!isNew) return;
    this.stop();
    this.step = null;
  }

  /** @param {number | null} step null ends the replay */
  stepTo(step) {
    this.stop();
    this.step = step === null || !this.path.length ? null : Math.max(0, Math.min(step, this.path.length - 1));
    this.moved();
  }

  startOrStop() {
    if (this.timer !== null) return this.stepTo(this.step);
    const from = this.step === null || this.step === this.path.length - 1 ? 0 : this.step + 1;
    /** @param {number} step */
    const next = (step) => {
      if (step >= this.path.length) return this.stepTo(null);
      this.stepTo(step);
      this.timer = setTimeout(() => next(step + 1), PACE);
      this.showRunning();
    };
    return next(from);
  }

  stop() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  /** @param {boolean} isPlaying the text grows: there is nothing to replay yet */
  render(isPlaying) {
    const steps = this.path.length;
    this.slider.max = String(Math.max(1, steps));
    this.slider.value = String(this.step === null ? steps : this.step + 1);
    const all = `${count(steps)} ${steps === 1 ? "step" : "steps"}`;
    this.where.textContent = this.step === null ? all : `step ${count(this.step + 1)} of ${count(steps)}`;
    this.showRunning();
    for (const control of [this.start, this.back, this.slider, this.forth]) control.disabled = !steps || isPlaying;
    this.element.dataset.step = this.step === null ? "" : String(this.step);
  }

  showRunning() {
    this.start.textContent = this.timer === null ? "▷ Replay" : "□ Stop";
  }
}
