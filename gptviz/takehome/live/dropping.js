// The files that a reader drops on the page or chooses: files, or folders with the files in them.

const MOST_FILES = 300; // of a folder: a model has a few, and a file for each snapshot
const DEEPEST = 3;

/** @typedef {{ path: string, file: Blob }} Given */

/** @param {Iterable<File>} files @returns {Given[]} */
export const listed = (files) => Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, file }));

/** What was dropped. @param {DataTransfer} transfer @returns {Promise<Given[]>} */
export async function dropped(transfer) {
  // Entries are there only while the event is handled: they are asked for before anything is waited for.
  const entries = [...transfer.items]
      .map((item) => item.webkitGetAsEntry?.())
      .filter((entry) => entry !== null && entry !== undefined),
    files = listed(transfer.files);
  if (!entries.some((entry) => entry.isDirectory)) return files;
  /** @type {Given[]} */
  const found = [];
  for (const entry of entries) await walk(entry, found, DEEPEST);
  return found;
}

/** @param {any} entry of a folder or a file @param {Given[]} found @param {number} depth how many folders deeper it may go */
async function walk(entry, found, depth) {
  if (found.length >= MOST_FILES) return;
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
  } else if (depth) {
    const reader = entry.createReader();
    const more = () => /** @type {Promise<any[]>} */ (new Promise((done, failed) => reader.readEntries(done, failed)));
    for (let some = await more(); some.length && found.length < MOST_FILES; some = await more())
      for (const one of some) await walk(one, found, depth - 1);
  }
}
