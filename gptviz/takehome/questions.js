// Questions of a lesson that was taken home: answers are checked here, a hint comes before a second try, and nothing is asked of a
// server. What is right was computed by the model when the file was written; it is kept packed, so that nobody reads it by accident.

import { asNumber, openCourse } from "./course.js";
import { inWords } from "./mounting.js";

/** @typedef {{name: string, kind: string, options: string[], value: string | number, within: number, words: string, hint: string,
 *    reveal: string}} Packed */

/** Whether an answer is right: a number within the tolerance, else the same text; a token may lack the space before it.
 *  @param {Packed} answer
 *  @param {string} given */
export function isRight({ kind, value, within }, given) {
  if (kind === "number") {
    const number = asNumber(given);
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
 *  `tell` is told when it ends.
 *  @param {HTMLFormElement} form @param {Packed} answer @param {(became: import("./course.js").Became) => void} tell */
function ask(form, answer, tell) {
  const said = /** @type {HTMLElement} */ (form.querySelector("[role=status]"));
  let given = "";
  let tries = 0;
  const say = (/** @type {string} */ words, /** @type {string} */ more) =>
    said.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: words }),
      document.createRange().createContextualFragment(more),
    );
  const show = (/** @type {boolean} */ right) => {
    const outcome = right ? inWords("Right:") : inWords("The answer is");
    say(`${outcome} ${answer.words}`, answer.reveal);
    for (const control of form.elements) /** @type {HTMLInputElement} */ (control).disabled = true;
    form.dataset.ended = "yes";
  };
  const end = (/** @type {boolean} */ right) => {
    show(right);
    tell({ given, right });
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    given = String(new FormData(form).get("answer") ?? "");
    if (given === "") return say(inWords("Choose or type an answer first."), "");
    tries += 1;
    if (isRight(answer, given)) return end(true);
    if (tries === 1 && answer.hint) return say(inWords("Not yet. Try once more."), answer.hint);
    return end(false);
  });
  form.querySelector("[type=button]")?.addEventListener("click", () => end(false));
  return (/** @type {import("./course.js").Became} */ became) => {
    const control = /** @type {RadioNodeList | HTMLInputElement | null} */ (form.elements.namedItem("answer"));
    if (control) control.value = became.given;
    show(became.right);
  };
}

/** The questions of the page, each with what a course site is told of it. */
function askAll() {
  const forms = /** @type {HTMLFormElement[]} */ ([...document.querySelectorAll("form.question")]);
  const answers = forms.map((form) => unpacked(form.dataset.answer ?? ""));
  const words = forms.map((form) => {
    const text = form.querySelector(".text")?.textContent ?? "";
    return text.slice(form.querySelector("strong")?.textContent?.length).trim();
  });
  const course = openCourse(answers.map((answer, number) => ({ ...answer, ask: words[number] })));
  forms.forEach((form, number) => {
    const shown = ask(form, answers[number], (became) => course.answered(number, became));
    const earlier = course.earlier.get(number);
    if (earlier) shown(earlier);
  });
}

if (globalThis.document) askAll();
