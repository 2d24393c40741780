// Copying, also where the browser offers no clipboard: pages from http, but for localhost, have none.

/**
 * Copy the text of an element.
 *
 * @param {HTMLElement} element
 * @returns {Promise<boolean>} whether it was copied; if not, it is selected
 */
export async function copied(element) {
  if (isSecureContext) {
    try {
      await navigator.clipboard.writeText(element.textContent ?? "");
      return true;
    } catch {
      // it is forbidden in this frame
    }
  }
  return copiedByCommand(element);
}

/** Select an element and copy its text in the old way, which every page may use after a click. @param {HTMLElement} element */
export function copiedByCommand(element) {
  getSelection()?.selectAllChildren(element);
  /** The text as it is, without its looks. @param {ClipboardEvent} event */
  const give = (event) => {
    event.clipboardData?.setData("text/plain", element.textContent ?? "");
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.addEventListener("copy", give, { capture: true });
  const isCopied = document.execCommand("copy");
  window.removeEventListener("copy", give, { capture: true });
  return isCopied;
}
