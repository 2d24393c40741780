// The texts that a model wrote from one prompt, as in gptviz/generate/tree.py: another token is another branch.

import { payload } from "../../components/generation_tree/payload.js";
import { Stages } from "../../components/sampling_ledger/stages.js";
import { uniform } from "./draws.js";
import { numberOf } from "./reading.js";

/** @typedef {import("../../components/generation_tree/payload.js").Node} Node @typedef {{ temperature: number, top_k: number, top_p: number, seed: number }} Sampling */

const ROOT = 0;
const CANDIDATES = 8;
const MOST_TOKENS = 500;
export const FIRST_TOKENS = 40; // that a text opens with
const SLICE = 100; // milliseconds

export class Tree {
  /** @param {import("./reading.js").Reading} reading @param {number[]} ends tokens that end a text @param {number | null} whole tokens of a whole sequence of its task */
  constructor(reading, ends, whole) {
    this.reading = reading;
    this.ends = ends;
    this.whole = whole ?? Infinity;
    /** @type {Map<number, Node>} all but the prompt */
    this.nodes = new Map();
    this.current = ROOT;
    this.isOpening = true; // whether the first tokens are still to be written
    /** @type {Map<number, { stages: Stages, step: import("../../components/generation_tree/payload.js").Step }>} by the node after which it was computed */
    this.computed = new Map();
  }

  /** The nodes from the first after the prompt to a node. @param {number} [at] */
  path(at = this.current) {
    const path = [];
    for (let node = this.nodes.get(at); node; node = this.nodes.get(node.parent)) path.unshift(node);
    return path;
  }

  /** What the model computes after a node. @param {number} at */
  after(at) {
    const found = this.computed.get(at);
    if (found) return found;
    const { decoder, text } = this.reading,
      ids = [...text, ...this.path(at).map(({ token }) => token)],
      start = Math.max(0, ids.length - decoder.config.context_length),
      keys = ids.length - start;
    /** @type {number[]} */
    const weights = [];
    const tap = (/** @type {string} */ name, /** @type {Float32Array} */ value) => {
      if (!name.endsWith(".pattern")) return;
      const rows = value.length / decoder.config.n_head;
      for (let end = rows; end <= value.length; end += rows) weights.push(...value.subarray(end - keys, end));
    };
    const logits = decoder.read(ids, { tap }).slice(-decoder.vocabSize);
    const computed = { stages: new Stages(logits), step: { after: at, start, keys, weights } };
    this.computed.set(at, computed);
    return computed;
  }

  /** The likeliest next tokens. @param {Sampling} sampling */
  candidates(sampling) {
    const { stages } = this.after(this.current);
    stages.set(sampling);
    return Array.from(stages.order.slice(0, CANDIDATES), (token) => ({
      ...{ token, probability: stages.before[token], drawn_with: stages.after[token], cut: stages.cut(token) },
    }));
  }

  /** Go on with a token, drawn if none is given. @param {Sampling} sampling @param {number} [token] */
  grow(sampling, token) {
    const candidates = this.candidates(sampling),
      { stages } = this.after(this.current),
      position = this.reading.text.length + this.path().length;
    const taken = token ?? (sampling.temperature === 0 ? stages.order[0] : stages.draw(uniform(sampling.seed, position)));
    const known = [...this.nodes.values()].find((one) => one.parent === this.current && one.token === taken);
    const logprob = Math.log(stages.before[taken]);
    const node = known ?? {
      id: this.nodes.size + 1,
      parent: this.current,
      token: taken,
      position,
      logprob,
      draw_logprob: Math.log(stages.after[taken]),
      total: (this.nodes.get(this.current)?.total ?? 0) + logprob,
      drawn: token === undefined ? described(sampling) : "",
      candidates,
    };
    this.nodes.set(node.id, node);
    this.current = node.id;
  }

  get isFull() {
    return this.path().length >= MOST_TOKENS;
  }

  /** Whether a text that grows by itself stops here. */
  get isAtEnd() {
    const path = this.path();
    return this.isFull || this.ends.includes(path.at(-1)?.token ?? -1) || this.reading.text.length + path.length >= this.whole;
  }

  /** Write the first tokens, as many as take about a `SLICE`. @param {Sampling} sampling */
  open(sampling) {
    const end = performance.now() + SLICE;
    while ((this.isOpening &&= this.nodes.size < FIRST_TOKENS && !this.isAtEnd) && performance.now() < end) {
      this.grow(sampling);
      this.after(this.current); // what is shown needs it too
    }
  }

  /** What a reader does: a button, or a click on the node `at`. @param {{ act: string, at: number, token: number, sampling: Sampling }} done */
  act({ act, at, token, sampling }) {
    if (!act) return;
    this.isOpening = false;
    if (at !== undefined && at !== ROOT && !this.nodes.has(at)) return; // of a text that was shown before
    if (act === "go" || act === "take") this.current = at;
    if (act === "undo") this.current = this.nodes.get(this.current)?.parent ?? ROOT;
    if (act === "restart") this.current = ROOT;
    if (act === "attend") this.after(at);
    if ((act === "step" || act === "take") && !this.isFull) this.grow(sampling, act === "take" ? token : undefined);
  }

  /** @param {Sampling} sampling @param {boolean} playing */
  packed(sampling, playing) {
    const { model, prompt, decoder, tokenizer, text, opened } = this.reading,
      path = this.path();
    const ghosts = this.candidates(sampling); // computed before the steps are listed
    const steps = playing ? null : Array.from(decoder.blocks.length ? this.computed.values() : [], ({ step }) => step);
    const settings = new Set(
      path.map(({ drawn }) => (drawn ? `drawn with ${drawn}, seed ${sampling.seed}` : "some tokens chosen by hand")),
    );
    const tree = { nodes: [...this.nodes.values()], most: CANDIDATES, ghosts, steps };
    return payload({ ...tree, heads: [decoder.blocks.length, decoder.config.n_head] }, tokenizer.labels, {
      ...{ number: numberOf(this.reading.of), current: this.current, prompt: this.reading.labels, prompt_length: text.length },
      ...{
        playing,
        full: this.isFull,
        spaced: tokenizer.spaced,
        address: {},
        heading: { model, prompt, settings: [...settings] },
      },
      status: `${path.length} token${path.length === 1 ? "" : "s"}`,
      ...(!playing && {
        code: `${opened}from gptviz.generate.tree import Tree
tree = Tree(lm.generation(${JSON.stringify(prompt)}))
for token in ${JSON.stringify(path.map(({ token }) => token))}:
    tree.take(token)`,
      }),
    });
  }
}

/** The settings in a few words. @param {Sampling} sampling */
function described({ temperature, top_k, top_p }) {
  const parts = [temperature === 0 ? "the likeliest" : `temperature ${temperature}`];
  return [...parts, ...(top_k ? [`top-k ${top_k}`] : []), ...(top_p < 1 ? [`top-p ${top_p}`] : [])].join(", ");
}
