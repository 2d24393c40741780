// A prompt that is not edited is one line. A line break shows as ⏎ there, what does not fit ends in an ellipsis, and the whole text
// is in the tooltip. A text area can do neither: `kit/page.css` draws the line that is written here over it.

import { APP_STATE, PROMPT } from "../kit/streamlit.js";

function look() {
  for (const box of document.querySelectorAll(PROMPT)) {
    if (!(box instanceof HTMLTextAreaElement) || !box.parentElement) continue;
    box.title = box.value;
    box.parentElement.dataset.closed = box.value.replaceAll("\n", " ⏎ ");
  }
}

/** @param {unknown} _view @param {AbortSignal} signal */
export function closedPrompt(_view, signal) {
  const watched = new MutationObserver(look);
  watched.observe(document.body, { subtree: true, childList: true, attributeFilter: [APP_STATE] });
  signal.addEventListener("abort", () => watched.disconnect());
  window.addEventListener("focusout", look, { signal });
  look();
}
