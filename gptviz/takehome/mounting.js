// How a page without a server shows a view made by hand.

/** @typedef {(event: string, value: any) => void} Send */

/** Bytes in base64. @param {string} text */
export const bytesIn = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** What the page, or a script that several pages share, has under this name. @param {string} name */
export function partOf(name) {
  const shared = /** @type {{ gptvizShared?: Record<string, string> }} */ (/** @type {unknown} */ (globalThis)).gptvizShared;
  return document.getElementById(name)?.textContent ?? shared?.[name] ?? "";
}

/** A text in the language of the page. @param {string} text @returns {string} */
export const inWords = (text) => JSON.parse(partOf("words") || "{}")[text] ?? text;

/** A function that shows payloads of the view called `name` in `host`. @param {HTMLElement} host @param {string} name @param {Send} send */
export async function mounted(host, name, send) {
  const [script, style] = [`script-${name}`, `style-${name}`].map((part) => JSON.parse(partOf(part)));
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const parentElement = host.attachShadow({ mode: "open" });
  parentElement.append(
    Object.assign(document.createElement("style"), { textContent: style }),
    Object.assign(document.createElement("div"), { className: "root" }),
  );
  const component = { name: host.id, key: host.id, parentElement, setTriggerValue: send };
  return (/** @type {Uint8Array} */ data) => module.default({ ...component, data });
}
