// Tells Python the query of the page's address, once for each that it does not know.

import { wholeQuery } from "../kit/address.js";
import { view } from "../kit/view.js";

class PageAddress {
  constructor() {
    /** @type {string | undefined} */
    this.sent = undefined;
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {};
  }

  /** @param {{ known: string }} payload */
  show({ known }) {
    const query = wholeQuery().toString();
    if (query === known || query === this.sent) return;
    this.sent = query;
    this.send("query", JSON.stringify({ query }));
  }
}

export default view(PageAddress);
