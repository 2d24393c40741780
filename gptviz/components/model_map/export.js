// The map as a table and as a picture that stands alone.

import { copyOf } from "../kit/copy.js";
import { picture, textOf } from "../kit/picture.js";
import { parametersOf, placed, sizes, titleOf } from "./boxes.js";

const COLUMNS = ["box", "name", "role", "values (shape)", "weights (shape)", "parameters", "equation"];
// Boxes that come after the blocks of their stack.
const ENDS = ["final_norm", "memory", "head.token", "shares", "pooled", "logits"];

/** A row for every box of the model, as they are computed. @param {import("./boxes.js").Boxes} boxes */
export function tableOfBoxes(boxes) {
  const all = [];
  const stacks = boxes.data.sizes[0] ? ["encoder.", ""] : [""];
  for (const stack of stacks) {
    const outside = boxes.data.boxes.filter(
      (/** @type {any} */ { path }) => placed(path).block === null && placed(path).stack === stack,
    );
    /** @param {any} box */
    const isEnd = ({ path }) => ENDS.includes(placed(path).within);
    if (!stack && stacks.length > 1) all.push(boxes.get("memory"));
    all.push(...outside.filter((/** @type {any} */ box) => !isEnd(box)));
    for (let block = 0; block < boxes.blocks(stack); block++) all.push(...boxes.of(stack, block).map((path) => boxes.get(path)));
    all.push(...outside.filter((/** @type {any} */ box) => isEnd(box) && box.path !== "memory"));
  }
  return { columns: COLUMNS, rows: all.map(rowOf) };
}

/** @param {any} box */
function rowOf(box) {
  /** @param {string} kind @param {(piece: any) => string} write */
  const listed = (kind, write) => box.pieces.filter((/** @type {any} */ piece) => piece.kind === kind).map(write);
  /** @param {any} piece */
  const rows = ({ rows: some }) => (some ? `[${some.join(":")}]` : "");
  const weights = listed("weight", (piece) => `${piece.name}${rows(piece)} ${sizes(piece.shape)}`);
  const activations = listed("activation", (piece) => `${piece.name} ${sizes(piece.shape)}`);
  return [box.path, titleOf(box), box.role, activations.join("; "), weights.join("; "), parametersOf(box), box.equation];
}

/** The map as it is on screen, in a drawing that stands alone. @param {any} data the payload @param {import("./stage.js").Stage} stage */
export function pictureOfMap(data, stage) {
  stage.element.style.zoom = "1"; // as it was laid out
  try {
    const copy = copyOf(stage.layout.isNarrow ? [stage.ahead, stage.element] : [stage.element]);
    return picture(stage.map.root, headingOf(data), copy.drawing, copy);
  } finally {
    stage.fit();
  }
}

/** @param {any} data @returns {import("../kit/picture.js").Heading} */
function headingOf(data) {
  /** @param {[label: string, probability: number | null][]} tokens */
  const text = (tokens) => textOf(tokens.map(([label]) => label));
  return {
    title: `All of a model: ${data.size}`,
    model: data.step === null ? data.model : `${data.model}, step ${data.step}`,
    prompt: text(data.sizes[0] ? data.source : data.tokens),
    settings: ["W: learned, how many numbers; all else is computed for this text"],
  };
}
