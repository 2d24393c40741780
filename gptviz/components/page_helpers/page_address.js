// Tells Python the query of the page's address, once for each that it does not know.

import { wholeQuery } from "../kit/address.js";

/** @param {{ send: (event: string, value: unknown) => void }} view that tells it */
export function pageAddress(view) {
  /** @type {string | undefined} */
  let sent;
  /** @param {{ known: string }} asked */
  const show = ({ known }) => {
    const query = wholeQuery().toString();
    if (query === known || query === sent) return;
    sent = query;
    view.send("query", JSON.stringify({ query }));
  };
  return { show };
}
