// The map as a table and as a picture that stands alone.

import { copyOf } from "../kit/copy.js";
import { picture, textOf } from "../kit/picture.js";
import { parametersOf, placed, sizes, titleOf } from "./boxes.js";

/** @typedef {import("./boxes.js").Box} Box @typedef {import("./boxes.js").Payload} Payload */

const COLUMNS = ["box", "name", "role", "values (shape)", "weights (shape)", "parameters", "equation"];
// Boxes that come after the blocks of their stack.
const ENDS = ["final_norm", "memory", "head.token", "shares", "pooled", "logits"];

/** A row for every box of the model, as they are computed. @param {import("./boxes.js").Boxes} boxes */
export function tableOfBoxes(boxes) {
  const all = [];
  const stacks = boxes.data.sizes[0] ? ["encoder.", ""] : [""];
  for (const stack of stacks) {
    const outside = boxes.data.boxes.filter(({ path }) => placed(path).block === null && placed(path).stack === stack);
    /** @param {Box} box */
    const isEnd = ({ path }) => ENDS.includes(placed(path).within);
    if (!stack && stacks.length > 1) all.push(boxes.at("memory"));
    all.push(...outside.filter((box) => !isEnd(box)));
    for (let block = 0; block < boxes.blocks(stack); block++) all.push(...boxes.of(stack, block).map((path) => boxes.at(path)));
    all.push(...outside.filter((box) => isEnd(box) && box.path !== "memory"));
  }
  /** @param {Box} box @param {import("./boxes.js").Kind} wanted */
  const listed = ({ pieces }, wanted) =>
    pieces
      .filter(({ kind }) => kind === wanted)
      .map(({ name, rows, shape }) => `${name}${rows ? `[${rows.join(":")}]` : ""} ${sizes(shape)}`)
      .join("; ");
  const rowOf = (/** @type {Box} */ box) => {
    const tensors = [listed(box, "activation"), listed(box, "weight")];
    return [box.path, titleOf(box), box.role, ...tensors, parametersOf(box), box.equation];
  };
  return { columns: COLUMNS, rows: all.map(rowOf) };
}

/** The map as it is on screen, in a drawing that stands alone. @param {Payload} data @param {import("./stage.js").Stage} stage */
export function pictureOfMap(data, stage) {
  stage.element.style.zoom = "1"; // as it was laid out
  try {
    const heading = {
      title: `All of a model: ${data.size}`,
      ...subjectOf(data),
      settings: stage.pen.isPlain ? [] : ["W: learned, how many numbers; all else is computed for this text"],
    };
    return picture(stage.map.root, heading, copyOf(stage.layout.isNarrow ? [stage.ahead, stage.element] : [stage.element]));
  } finally {
    stage.fit();
  }
}

/** The model and the text that it reads, for headings. @param {Payload} data */
export function subjectOf(data) {
  const tokens = data.sizes[0] ? data.source : data.tokens;
  return {
    model: data.step === null ? data.model : `${data.model}, step ${data.step}`,
    prompt: textOf(tokens.map(([label]) => label)),
  };
}
