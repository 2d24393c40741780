// Questions of a lesson that was taken home: answers are checked here, a hint comes before a second try, and nothing is asked of a
// server. What is right was computed by the model when the file was written; it is kept packed, so that nobody reads it by accident.

/** @typedef {{kind: string, value: string | number, within: number, words: string, hint: string, reveal: string}} Packed */

/** Whether an answer is right: a number within the tolerance, else the same text; a token may lack the space before it.
 *  @param {Packed} answer
 *  @param {string} given */
export function isRight({ kind, value, within }, given) {
  if (kind === "number") {
    const number = given.trim() === "" ? Number.NaN : Number(given.trim().replace("−", "-").replace(",", "."));
    return Number.isFinite(number) && Math.abs(number - Number(value)) <= within + 1e-9 * Math.abs(Number(value));
  }
  const same = given === value;
  return kind === "token" ? same || (given.trim() !== "" && given.trim() === String(value).trim()) : same;
}

/** @param {string} packed @returns {Packed} */
export function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** What became of a question is said below it: its texts were written as HTML, with all that models and people wrote escaped.
 *  @param {HTMLFormElement} form */
function ask(form) {
  const answer = unpacked(form.dataset.answer ?? "");
  const said = /** @type {HTMLElement} */ (form.querySelector("[role=status]"));
  let tries = 0;
  const say = (/** @type {string} */ words, /** @type {string} */ more) =>
    said.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: words }),
      document.createRange().createContextualFragment(more),
    );
  const end = (/** @type {string} */ words) => {
    say(`${words} ${answer.words}`, answer.reveal);
    for (const control of form.elements) /** @type {HTMLInputElement} */ (control).disabled = true;
    form.dataset.ended = "yes";
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = String(new FormData(form).get("answer") ?? "");
    if (given === "") return say("Choose or type an answer first.", "");
    tries += 1;
    if (isRight(answer, given)) return end("Right:");
    if (tries === 1 && answer.hint) return say("Not yet. Try once more.", answer.hint);
    return end("The answer is");
  });
  form.querySelector("[type=button]")?.addEventListener("click", () => end("The answer is"));
}

if (globalThis.document)
  for (const form of document.querySelectorAll("form.question")) ask(/** @type {HTMLFormElement} */ (form));
