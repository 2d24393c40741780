// Tells Python the query of the page's address, once for each that it does not know.

import { wholeQuery } from "../kit/address.js";

export class PageAddress {
  /** @param {{ send: (event: string, value: unknown) => void }} view that tells it */
  constructor(view) {
    this.view = view;
    /** @type {string | undefined} */
    this.sent = undefined;
  }

  /** @param {{ known: string }} asked */
  show({ known }) {
    const query = wholeQuery().toString();
    if (query === known || query === this.sent) return;
    this.sent = query;
    this.view.send("query", JSON.stringify({ query }));
  }
}
