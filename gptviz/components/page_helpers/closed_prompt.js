// A prompt that is not edited is one line. A line break shows as ⏎ there, what does not fit ends in an ellipsis, and the whole text
// is in the tooltip. A text area can do neither: `kit/page.css` draws the line that is written here over it.

import { APP_STATE, PROMPT } from "../kit/streamlit.js";

export class ClosedPrompt {
  constructor() {
    this.look = () => {
      for (const box of document.querySelectorAll(PROMPT)) {
        if (!(box instanceof HTMLTextAreaElement) || !box.parentElement) continue;
        box.title = box.value;
        box.parentElement.dataset.closed = box.value.replaceAll("\n", " ⏎ ");
      }
    };
    this.watched = new MutationObserver(this.look);
    this.watched.observe(document.body, { subtree: true, childList: true, attributeFilter: [APP_STATE] });
    window.addEventListener("focusout", this.look);
    this.look();
  }

  close() {
    this.watched.disconnect();
    window.removeEventListener("focusout", this.look);
  }
}
