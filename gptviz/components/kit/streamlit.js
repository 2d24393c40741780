// The elements that scripts look for on Streamlit's page. Streamlit promises none of them:
// gptviz/streamlit_internals.py says what each is for.

const APP = "[data-testid=stApp]";
export const APP_STATE = "data-test-script-state";
export const PROMPT = '[class*="st-key-one-line-"] textarea';
export const MAIN = "[data-testid=stMain]";
export const VIEWS = ".stBidiComponent, [data-testid=stDataFrame], [data-testid=stPlotlyChart]";
export const POPOVER_BUTTON = "[data-testid=stPopoverButton]";
export const POPOVER = "[data-testid=stPopoverBody]";

/** What is seen of what scrolls: below the bar that stays at the top of a page. @param {Element} scroller */
export function seenOf(scroller) {
  const { top, bottom } = scroller.getBoundingClientRect();
  return { top: top + (parseFloat(getComputedStyle(scroller).scrollPaddingTop) || 0), bottom };
}

/** Whether the server computes the page. */
export function isAppRunning() {
  const app = document.querySelector(APP);
  return app instanceof HTMLElement && app.dataset.testScriptState === "running";
}
