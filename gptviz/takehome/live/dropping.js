// The files that a reader drops on the page or chooses: files, or folders with the files in them.

const MOST_FILES = 300; // of a folder: a model has a few, and a file for each snapshot
const DEEPEST = 3;

/** @typedef {{ path: string, file: Blob }} Given */

/** @param {Iterable<File>} files @returns {Given[]} */
export const listed = (files) => Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, file }));

/** What was dropped. An Error says so where this browser does not read folders. @param {DataTransfer} transfer @returns {Promise<Given[]>} */
export async function dropped(transfer) {
  const files = listed(transfer.files);
  // What is a folder can be asked only while the event is handled, before anything is waited for. Chromium reads folders for a page
  // that lies in a folder itself by handles alone, and other browsers have no handles.
  const items = /** @type {any[]} */ ([...transfer.items]).filter(({ kind }) => kind === "file"),
    entries = items.map((item) => item.webkitGetAsEntry?.()),
    handles = items.map((item) => item.getAsFileSystemHandle?.());
  if (!entries.some((entry) => entry?.isDirectory)) return files;
  /** @type {Given[]} */
  const found = [];
  try {
    for (const [i, entry] of entries.entries()) {
      const handle = await handles[i];
      await (handle ? walkHandle(handle, handle.name, found, DEEPEST) : walkEntry(entry, found, DEEPEST));
    }
  } catch {
    throw new Error("this browser does not read folders here: choose the files in it, or a zip file");
  }
  return found;
}

/** @param {any} handle of a folder or a file @param {string} path @param {Given[]} found @param {number} depth how many folders deeper it may go */
async function walkHandle(handle, path, found, depth) {
  if (found.length >= MOST_FILES) return;
  if (handle.kind === "file") found.push({ path, file: await handle.getFile() });
  else if (depth) for await (const one of handle.values()) await walkHandle(one, `${path}/${one.name}`, found, depth - 1);
}

/** @param {any} entry as a handle, of other browsers @param {Given[]} found @param {number} depth */
async function walkEntry(entry, found, depth) {
  if (found.length >= MOST_FILES) return;
  const asked = (/** @type {(done: any, failed: any) => void} */ ask) => /** @type {Promise<any>} */ (new Promise(ask));
  if (entry.isFile) {
    const file = await asked((done, failed) => entry.file(done, failed));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
  } else if (depth) {
    const reader = entry.createReader();
    const more = () => asked((done, failed) => reader.readEntries(done, failed));
    for (let some = await more(); some.length; some = await more())
      for (const one of some) await walkEntry(one, found, depth - 1);
  }
}
