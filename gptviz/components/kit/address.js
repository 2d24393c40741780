// The address of the page: what a view shows without the server is in it, so that a link reopens it.

/** What the address says for `key`, null if nothing. */
function inAddress(key) {
  return new URLSearchParams(location.search).get(key);
}

/** Write values into the address; null takes a key out of it. No step back in the browser's history is made. */
function toAddress(values) {
  const address = new URL(location.href);
  for (const [key, value] of Object.entries(values)) {
    if (value === null) address.searchParams.delete(key);
    else address.searchParams.set(key, value);
  }
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}
