// Zip files: those of others, all of whose names and sizes are checked as gptviz/runs/zips.py checks them, and ours, which are not
// compressed.

const MOST_ENTRIES = 10_000;
const LONGEST_NAME = 400; // characters of a path
const MOST_RATIO = 100; // how much smaller zip files may be than their content
const SMALL = 4 * 2 ** 20;
const LARGEST = 0xffffffff; // stands for a number that is written elsewhere, in files of more than 4 GB
const END = { mark: 0x06054b50, length: 22, comment: 65_535 };
const LISTED = { mark: 0x02014b50, length: 46 };
const LOCAL = { mark: 0x04034b50, length: 30 };
const [STORED, DEFLATED] = [0, 8];
const [PLAIN, FOLDER] = [0o100000, 0o040000]; // kinds of files, in the upper bits of a mode
const UTF8 = 0x800; // the flag of a name in UTF-8
// What Windows takes for a device, with any ending.
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?$/i;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

/** @typedef {{ name: string, size: number, packed: number, method: number, sum: number, at: number }} Entry */

/** @param {string} name */
const show = (name) => `“${name.slice(0, 80)}”`;
const damaged = (/** @type {string} */ why) => new Error(`it is no zip file, or damaged (${why}): copy or download it again`);

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? 0xedb88320 ^ (rest >>> 1) : rest >>> 1;
  return rest;
});

/** The checksum of a zip file's entry (CRC-32). @param {Uint8Array} bytes */
export function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

/** The files in a zip file, without folders. An Error names what is refused. @param {Uint8Array} file @returns {Entry[]} */
export function entriesOf(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let end = file.length - END.length;
  while (end >= 0 && view.getUint32(end, true) !== END.mark && end > file.length - END.length - END.comment) end--;
  if (end < 0 || view.getUint32(end, true) !== END.mark) throw damaged("it has no list of files");
  const [count, start] = [view.getUint16(end + 10, true), view.getUint32(end + 16, true)];
  if (!count) throw new Error("it is empty");
  if (count > MOST_ENTRIES) throw new Error(`it has ${count} entries, and ${MOST_ENTRIES} is the most that is unpacked`);
  const entries = [];
  for (let at = start, i = 0; i < count; i++) {
    if (at + LISTED.length > end || view.getUint32(at, true) !== LISTED.mark) throw damaged("its list of files is cut short");
    const [flags, method, name, extra, comment] = [8, 10, 28, 30, 32].map((place) => view.getUint16(at + place, true)),
      [sum, packed, size, mode, local] = [16, 20, 24, 38, 42].map((place) => view.getUint32(at + place, true)),
      last = at + LISTED.length + name;
    if (last > end) throw damaged("its list of files is cut short");
    const entry = { name: named(file.subarray(at + LISTED.length, last), flags), size, packed, method, sum, at: local };
    checkKind(entry, flags, mode >>> 16);
    entries.push(entry);
    at = last + extra + comment;
  }
  checkPaths(entries);
  const unpacked = entries.reduce((total, { size }) => total + size, 0);
  if (unpacked > MOST_RATIO * file.length + SMALL)
    throw new Error(`its ${file.length} bytes would become ${unpacked}, as those of no model do`);
  return entries.filter(({ name }) => !name.endsWith("/"));
}

/** @param {Uint8Array} bytes @param {number} flags */
function named(bytes, flags) {
  try {
    return new TextDecoder(flags & UTF8 ? "utf-8" : "latin1", { fatal: true }).decode(bytes);
  } catch {
    throw damaged("a name is no text");
  }
}

/** Refuse an entry that is neither a plain file nor a folder, or that is packed in an unusual way. @param {Entry} entry @param {number} flags @param {number} mode */
function checkKind({ name, method, size, packed, at }, flags, mode) {
  const kind = mode & 0o170000;
  if (![0, PLAIN, FOLDER].includes(kind) || (kind === FOLDER && !name.endsWith("/")))
    throw new Error(`${show(name)} is a link or a device, not a file`);
  if (flags & 1) throw new Error(`${show(name)} is locked by a password`);
  if (method !== STORED && method !== DEFLATED)
    throw new Error(`${show(name)} is packed by another method than the usual one (deflate)`);
  if ([size, packed, at].includes(LARGEST)) throw new Error(`${show(name)} is larger than a page opens`);
}

/** Refuse names that lead out of a folder, are special to a system, or could not exist in one folder on every disk. @param {{ name: string }[]} entries */
export function checkPaths(entries) {
  const [files, folders] = [new Set(), new Set()];
  for (const { name } of entries) {
    const isFolder = name.endsWith("/"),
      path = isFolder ? name.slice(0, -1) : name,
      parts = path.split("/");
    if (name.length > LONGEST_NAME || UNPRINTABLE.test(name) || /[\\:*?"<>|]/.test(name))
      throw new Error(`${show(name)} is no name for a file`);
    if (parts.some((part) => ["", ".", ".."].includes(part))) throw new Error(`${show(name)} leads out of its folder`);
    if (parts.some((part) => /[. ]$/.test(part) || DEVICE.test(part)))
      throw new Error(`${show(name)} is a name that some systems take for something else`);
    const alike = path.normalize("NFC").toLowerCase(); // some disks do not tell such names apart
    if (files.has(alike) || (folders.has(alike) && !isFolder)) throw new Error(`${show(name)} stands twice in it`);
    (isFolder ? folders : files).add(alike);
  }
  for (const path of [...files, ...folders]) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
      if (files.has(path.slice(0, at))) throw new Error(`${show(path.slice(0, at))} is a file and a folder in it`);
  }
}

/** The content of an entry, which is as long as it says and has its checksum. @param {Uint8Array} file @param {Entry} entry */
export async function unpackedEntry(file, { name, size, packed, method, sum, at }) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (at + LOCAL.length > file.length || view.getUint32(at, true) !== LOCAL.mark)
    throw damaged(`${name} is not where it should be`);
  const start = at + LOCAL.length + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (start + packed > file.length) throw damaged(`${name} is cut short`);
  const stored = file.subarray(start, start + packed),
    content = method === STORED ? stored.slice() : await inflated(stored, size, name);
  if (content.length !== size) throw new Error(`${name} is not as long as it says`);
  if (checksum(content) !== sum) throw damaged(`${name} is not as it was packed`);
  return content;
}

/** @param {Uint8Array} bytes @param {number} size what it says; no more is kept @param {string} name */
async function inflated(bytes, size, name) {
  const content = new Uint8Array(size),
    reader = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  let length = 0;
  try {
    for (let { value } = await reader.read(); value; { value } = await reader.read()) {
      if (length + value.length <= size) content.set(value, length);
      length += value.length;
      if (length > size) break;
    }
  } catch {
    throw damaged(`${name} cannot be unpacked`);
  } finally {
    reader.cancel().catch(() => {});
  }
  if (length > size) throw new Error(`${name} is not as long as it says`);
  return content.subarray(0, length);
}

/** A zip file of these files, by their paths in ASCII. @param {Record<string, Uint8Array | string>} files */
export function zipped(files) {
  /** @type {Uint8Array[]} */
  const parts = [];
  /** @type {Uint8Array[]} */
  const listed = [];
  let at = 0;
  for (const [path, content] of Object.entries(files)) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content,
      name = new TextEncoder().encode(path);
    // What both headers have: version 2.0, no flags, stored, the first day that a zip file can name, and the sizes.
    const shared = [
      20,
      2,
      0,
      2,
      STORED,
      2,
      0,
      2,
      33,
      2,
      checksum(bytes),
      4,
      bytes.length,
      4,
      bytes.length,
      4,
      name.length,
      2,
      0,
      2,
    ];
    parts.push(numbers([LOCAL.mark, 4, ...shared]), name, bytes);
    const place = [0, 2, 0, 2, 0, 2, (PLAIN | 0o644) * 2 ** 16, 4, at, 4];
    listed.push(numbers([LISTED.mark, 4, 3 * 256 + 20, 2, ...shared, ...place]), name); // 3: a mode of Unix
    at += LOCAL.length + name.length + bytes.length;
  }
  const list = listed.reduce((length, one) => length + one.length, 0),
    count = Object.keys(files).length;
  return joined([...parts, ...listed, numbers([END.mark, 4, 0, 4, count, 2, count, 2, list, 4, at, 4, 0, 2])]);
}

/** Numbers, each with the bytes that it takes, the last byte being the largest. @param {number[]} pairs */
function numbers(pairs) {
  const bytes = [];
  for (let i = 0; i < pairs.length; i += 2)
    for (let byte = 0; byte < pairs[i + 1]; byte++) bytes.push((pairs[i] / 256 ** byte) & 255);
  return Uint8Array.from(bytes);
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const all = new Uint8Array(parts.reduce((length, one) => length + one.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
