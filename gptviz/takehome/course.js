// What a course site is told of the answers to a lesson. If a window around the file has a run-time of SCORM 1.2, it keeps them: one
// interaction per question, the score, whether all is answered. Every page that shows the file in a frame gets an xAPI statement per
// question, without `actor`: it knows who answers. Without either, the lesson is the same.

/** A question as a course site is told of it. @typedef {{name: string, ask: string, kind: string, options: string[],
 *    value: string | number, within: number}} Asked */
/** What became of a question: what was given last, "" where nothing was. @typedef {{given: string, right: boolean}} Became */
/** @typedef {Record<string, (...given: string[]) => unknown>} Runtime */

const MOST_WINDOWS = 20;
const LONGEST_DATA = 4096; // characters of `suspend_data` in SCORM 1.2
const LONGEST_TEXT = 255; // characters of an answer or a name
const TYPES = new Map([
  ["choice", { scorm: "choice", xapi: "choice" }],
  ["number", { scorm: "numeric", xapi: "numeric" }],
  ["state", { scorm: "performance", xapi: "other" }],
]);
const TYPED = { scorm: "fill-in", xapi: "fill-in" };
const VERB = { id: "http://adlnet.gov/expapi/verbs/answered", display: { "en-US": "answered" } };

/** A number as people write it, or NaN. @param {string} given */
export const asNumber = (given) => (given.trim() === "" ? Number.NaN : Number(given.trim().replace("−", "-").replace(",", ".")));

/** Whether a question can be answered in a file. @param {Asked} asked */
const isAnswerable = ({ kind }) => kind !== "state";

/** The run-time of a course site: that of this window, of one around it, or of the one that opened it.
 *  @param {any} start @returns {Runtime | null} */
export function runtimeAround(start) {
  try {
    for (let window = start, seen = 0; window && seen < MOST_WINDOWS; seen += 1) {
      if (window.API) return window.API;
      window = window.parent === window ? window.opener : window.parent;
    }
  } catch {
    /* a window of another site keeps what it has to itself */
  }
  return null;
}

/** A time as SCORM 1.2 has it. @param {number} milliseconds */
export function timespan(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (/** @type {number} */ number) => String(Math.floor(number)).padStart(2, "0");
  return `${String(Math.floor(seconds / 3600)).padStart(4, "0")}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** An answer by the letter of its option, a number with a point, a text as it was typed: in forms that course sites accept.
 *  @param {Asked} asked @param {string | number} answer */
function formal({ kind, options }, answer) {
  if (kind === "choice") return options.includes(String(answer)) ? (10 + options.indexOf(String(answer))).toString(36) : "";
  if (kind !== "number") return String(answer).slice(0, LONGEST_TEXT);
  const number = asNumber(String(answer));
  return Number.isFinite(number) ? String(number) : "";
}

/** A number that is another one where the questions or their answers are. @param {Asked[]} questions */
function mark(questions) {
  const text = JSON.stringify(questions.map(({ name, kind, value }) => [name, kind, value]));
  return Array.from(text).reduce((sum, character) => (Math.imul(sum, 31) + Number(character.codePointAt(0))) | 0, 0);
}

/** What became of these questions, in a text that a later visit understands. A long one has no answers, only whether they are right.
 *  @param {Asked[]} questions @param {Map<number, Became>} became */
export function packed(questions, became) {
  const entries = [...became].map(([number, { given, right }]) => [number, right ? 1 : 0, given]);
  const whole = JSON.stringify([mark(questions), ...entries]);
  return whole.length <= LONGEST_DATA ? whole : JSON.stringify([mark(questions), ...entries.map((entry) => entry.slice(0, 2))]);
}

/** What became of these questions on an earlier visit; nothing where the text is about others, or none of ours.
 *  @param {Asked[]} questions @param {string} text @returns {Map<number, Became>} */
export function unpackedBecame(questions, text) {
  try {
    const [of, ...entries] = JSON.parse(text);
    if (of !== mark(questions)) return new Map();
    const ours = /** @type {[number, number, unknown?][]} */ (entries).filter(([number]) => number in questions);
    return new Map(ours.map(([number, right, given = ""]) => [number, { right: right === 1, given: String(given) }]));
  } catch {
    return new Map();
  }
}

/** The run-time's record of one visit. */
export class Visit {
  /** @param {Runtime} runtime @param {Asked[]} questions */
  constructor(runtime, questions) {
    this.runtime = runtime;
    this.questions = questions;
    this.began = Date.now();
    this.isOpen = this.call("LMSInitialize", "") === "true";
    this.became = unpackedBecame(questions, this.call("LMSGetValue", "cmi.suspend_data"));
    if (["", "not attempted"].includes(this.call("LMSGetValue", "cmi.core.lesson_status")))
      this.set("core.lesson_status", "incomplete");
    this.note();
  }

  /** A run-time that fails does not stop the lesson. @param {string} name @param {string[]} given */
  call(name, ...given) {
    try {
      return String(this.runtime[name](...given));
    } catch {
      return "";
    }
  }

  /** @param {string} name @param {string | number} value */
  set(name, value) {
    this.call("LMSSetValue", `cmi.${name}`, String(value));
  }

  /** Whether every question that counts is answered. */
  get isComplete() {
    return this.questions.every((asked, number) => !isAnswerable(asked) || this.became.has(number));
  }

  /** @param {number} number @param {Became} became */
  answered(number, became) {
    const asked = this.questions[number];
    const words = asked.ask.normalize("NFKD").replaceAll(/[^A-Za-z0-9]+/g, "_");
    const here = `interactions.${Number(this.call("LMSGetValue", "cmi.interactions._count")) || 0}`;
    const outcome = became.right ? "correct" : "wrong";
    this.set(`${here}.id`, `${asked.name}_${words}`.slice(0, LONGEST_TEXT));
    this.set(`${here}.type`, (TYPES.get(asked.kind) ?? TYPED).scorm);
    this.set(`${here}.time`, new Date().toTimeString().slice(0, 8));
    this.set(`${here}.correct_responses.0.pattern`, formal(asked, asked.value));
    this.set(`${here}.student_response`, formal(asked, became.given));
    this.set(`${here}.result`, became.given === "" ? "neutral" : outcome);
    this.became.set(number, became);
    this.note();
  }

  /** Keeps what is known now. */
  note() {
    const counted = this.questions.flatMap((asked, number) =>
      isAnswerable(asked) ? [this.became.get(number)?.right ?? false] : [],
    );
    if (counted.length) {
      this.set("core.score.min", 0);
      this.set("core.score.max", 100);
      this.set("core.score.raw", Math.round((1000 * counted.filter(Boolean).length) / counted.length) / 10);
    }
    this.set("suspend_data", packed(this.questions, this.became));
    if (this.isComplete) this.set("core.lesson_status", "completed");
    this.call("LMSCommit", "");
  }

  /** Ends the visit; one that is not complete goes on the next time. */
  end() {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.set("core.exit", this.isComplete ? "" : "suspend");
    this.set("core.session_time", timespan(Date.now() - this.began));
    this.call("LMSFinish", "");
  }
}

/** An xAPI statement that a question was answered. @param {string} lesson @param {string} title @param {Asked} asked
 *  @param {Became} became @param {string} language */
export function statement(lesson, title, asked, became, language) {
  const activity = `urn:gptviz:lesson:${lesson}`;
  const value = Number(asked.value);
  const choices = asked.options.map((option) => ({ id: formal(asked, option), description: { [language]: option } }));
  const pattern = asked.kind === "number" ? `${value - asked.within}[:]${value + asked.within}` : formal(asked, asked.value);
  const definition = {
    type: "http://adlnet.gov/expapi/activities/cmi.interaction",
    description: { [language]: asked.ask },
    interactionType: (TYPES.get(asked.kind) ?? TYPED).xapi,
    correctResponsesPattern: [pattern],
    ...(choices.length && { choices }),
  };
  const around = { objectType: "Activity", id: activity, definition: { name: { [language]: title } } };
  return {
    verb: VERB,
    object: { objectType: "Activity", id: `${activity}:${asked.name}`, definition },
    result: { response: formal(asked, became.given), success: became.right, completion: true },
    context: { contextActivities: { parent: [around] }, language },
    timestamp: new Date().toISOString(),
  };
}

/** Begins to tell a course site of the questions of the lesson on this page: what became of them on earlier visits, and a function
 *  that is told what becomes of one. @param {Asked[]} questions */
export function openCourse(questions) {
  const { lang, dataset } = document.documentElement;
  const runtime = runtimeAround(globalThis);
  const visit = runtime && new Visit(runtime, questions);
  addEventListener("pagehide", () => visit?.end());
  const answered = (/** @type {number} */ number, /** @type {Became} */ became) => {
    visit?.answered(number, became);
    const title = document.querySelector("h1")?.textContent ?? "";
    const said = statement(dataset.lesson ?? "", title, questions[number], became, lang);
    if (parent !== window) parent.postMessage({ type: "xapi", statement: said }, "*");
  };
  return { earlier: visit?.became ?? new Map(), answered };
}
