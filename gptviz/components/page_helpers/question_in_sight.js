// The question of a lesson that somebody answers is in sight as a whole, with its button Check and with what is said of the answer:
// the text of a step may be longer than the side bar, or than the sheet of a phone.

const QUESTION = '[class*="st-key-question-"]';
const SAID = '[data-testid="stAlert"]';

/** The box of the question that a change is in. @param {Node} changed */
const questionOf = (changed) => (changed instanceof Element ? changed : changed.parentElement)?.closest(QUESTION);

/** @param {unknown} _view @param {AbortSignal} signal */
export function questionInSight(_view, signal) {
  /** @param {unknown} one */
  const see = (one) => one instanceof Element && one.scrollIntoView({ block: "nearest" });
  /** @param {Event} event */
  const touched = ({ target }) => {
    if (target instanceof Node) see(questionOf(target));
  };
  window.addEventListener("focusin", touched, { signal });
  // What is said of an answer comes from the server, a moment after the click.
  const watched = new MutationObserver((changes) => {
    const added = changes.flatMap(({ addedNodes }) => [...addedNodes]);
    const said = added.find((one) => one instanceof Element && (one.matches(SAID) || one.querySelector(SAID)));
    if (said && questionOf(said)) see(said);
  });
  watched.observe(document.body, { subtree: true, childList: true });
  signal.addEventListener("abort", () => watched.disconnect());
}
