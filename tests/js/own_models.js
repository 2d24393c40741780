// Models that a browser opens or trains, for tests/takehome/test_live_own.py. On standard input: zip files or folders to open, each
// with what it is read with, or a run to train and where its files are written.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Decoder } from "../../gptviz/takehome/live/decoder.js";
import { filesOf, opened } from "../../gptviz/takehome/live/opening.js";
import { Run } from "../../gptviz/takehome/live/run.js";
import { tensorsIn } from "../../gptviz/takehome/live/safetensors.js";
import { shapesOf } from "../../gptviz/takehome/live/shapes.js";
import { zipped } from "../../gptviz/takehome/live/zip.js";

const { open, fields, prompt, train, stopAt, out, twin } = JSON.parse(readFileSync(0, "utf-8"));
const blob = (path) => new Blob([readFileSync(path)]);

async function read(path) {
  const given = path.endsWith(".zip")
    ? [{ path: basename(path), file: blob(path) }]
    : readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .map((file) => ({ path: `${basename(path)}${file.slice(path.length)}`, file: blob(file) }));
  const { files, name } = await filesOf(given),
    { config, tokens, ends, steps } = opened(files, fields),
    ids = tokens.encode(prompt);
  const logits = [...steps].map(([step, file]) => {
    const decoder = new Decoder(config, tensorsIn(file, shapesOf(config)));
    return [step, Array.from(decoder.read(ids).slice(-decoder.vocabSize))];
  });
  return { name, ids, ends, logits };
}

if (open) {
  const answers = await Promise.all(open.map((path) => read(path).catch((error) => ({ refused: error.message }))));
  console.log(JSON.stringify(answers));
} else {
  const run = new Run(train);
  while (!run.isOver) {
    run.advance(1);
    if (run.step >= stopAt) run.stop();
  }
  const files = Object.entries(run.files("1.0.0")).map(([file, content]) => [`browser/${file}`, content]);
  writeFileSync(`${out}/browser.zip`, zipped(Object.fromEntries(files)));
  writeFileSync(`${out}/twin.zip`, zipped(run.twin("browser", twin)));
  const logits = run.training.decoder.read(run.tokens.encode(prompt)).slice(-run.config.vocab_size);
  console.log(JSON.stringify({ ...run.report, logits: Array.from(logits), prompt: run.prompt, kept: [...run.snapshots.keys()] }));
}
