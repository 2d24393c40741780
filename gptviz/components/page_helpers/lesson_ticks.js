// The lessons that were done in this browser: it keeps their names, sends them nowhere, and ticks them in the list.

const KEPT = "gptviz lessons done";
// As a lesson's file may be called (gptviz/lessons/lesson.py): what else is kept under that name is not ours.
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,60}$/;

/** The names in what was kept. @param {string | null} kept */
export function namesIn(kept) {
  try {
    const names = JSON.parse(kept ?? "[]");
    return Array.isArray(names) ? names.filter((one) => typeof one === "string" && NAME.test(one)) : [];
  } catch {
    return [];
  }
}

/** The style that shows the ticks of these lessons, however often the page is drawn again. @param {string[]} names */
export function styleOf(names) {
  return names.length ? `${names.map((one) => `.lesson-tick.done-${one}`).join(", ")} { display: inline; }` : "";
}

/** @param {unknown} _view @param {AbortSignal} signal */
export function lessonTicks(_view, signal) {
  const style = document.head.appendChild(document.createElement("style"));
  signal.addEventListener("abort", () => style.remove());
  /** @param {{ done: string }} asked the lesson that is done now, or an empty text */
  const show = ({ done }) => {
    let names = done ? [done] : [];
    try {
      names = [...new Set([...namesIn(localStorage.getItem(KEPT)), ...names])];
      if (done) localStorage.setItem(KEPT, JSON.stringify(names));
    } catch {
      // A browser that keeps nothing forgets what was done when the page is left.
    }
    style.textContent = styleOf(names);
  };
  return { show };
}
