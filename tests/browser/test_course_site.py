"""A lesson inside a course site: a run-time of SCORM 1.2 that is not ours (scorm-again) keeps the
answers from one visit to the next, a page around it hears them, and without both it is the same
lesson.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, Route, expect

from gptviz.lessons.lesson import parse_lesson
from gptviz.takehome.lesson_file import lesson_content
from gptviz.takehome.page import PageContent
from gptviz.takehome.page_file import as_html
from tests.browser.machinery import HOSTILE, PATIENCE

RUNTIME = Path(__file__).resolve().parents[2] / "node_modules/scorm-again/dist/scorm12.min.js"

pytestmark = pytest.mark.browser
with_runtime = pytest.mark.skipif(
    not RUNTIME.is_file(), reason="scorm-again is not here: npm install"
)

LESSON = """---
title: A title & <b>more</b>
about: A sentence.
---
## The first

```question
ask: Which one?
kind: choice
answer: "'the second'"
options: [the first, the second, the third]
reveal: It was the second.
```

```question
ask: How many?
kind: number
answer: 1000 / 3
within: 1
hint: More than 300.
```

## The next

```question
ask: Which token?
kind: token
answer: "' Mary'"
```

```question
ask: Where is it?
kind: state
state: block
answer: "'2'"
```

```page
open: attention
```
"""
# Every value that is set is noted with what the run-time says of it: 0 is no error.
SITE = """<!doctype html><title>A course</title>
<script>window.heard = []; addEventListener("message", ({ data }) => heard.push(data));</script>
<script src="runtime.js"></script>
<script>
  if (window.Scorm12API) {
    window.API = new Scorm12API({ autocommit: false, logLevel: 5 });
    API.loadFromJSON(BEFORE);
    window.said = [];
    const set = API.LMSSetValue.bind(API);
    API.LMSSetValue = (name, value) => {
      const result = set(name, value);
      said.push([name, value, result, API.LMSGetLastError()]);
      return result;
    };
    window.finished = 0;
    API.on("LMSFinish", () => { finished += 1; });
  }
</script>
<iframe src="lesson.html" width="800" height="800"></iframe>"""
CORE = """() => {
    const { core, interactions, suspend_data } = JSON.parse(JSON.stringify(API.cmi));
    return { core, interactions, suspend_data };
}"""


def file_of(text: str) -> str:
    """The file of a lesson whose page is empty."""
    lesson = parse_lesson(text, "own")
    return as_html(lesson_content(lesson, {}, lambda name, query: PageContent(name, query, ())))


Opened = Callable[..., tuple[Page, FrameLocator]]


@pytest.fixture
def course(browser: Browser) -> Iterator[Opened]:
    """Opens a course site that shows the file of a lesson; `runtime` is the script of its run-time,
    and `before` what it kept of an earlier visit.
    """
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))

    def opened(
        html: str, runtime: str = "", before: dict[str, Any] | None = None
    ) -> tuple[Page, FrameLocator]:
        files = {
            "site.html": SITE.replace("BEFORE", json.dumps(before or {}).replace("<", "\\u003c")),
            "runtime.js": runtime,
            "lesson.html": html,
            "gone.html": "gone",
        }

        def answer(route: Route) -> None:
            name = route.request.url.rpartition("/")[2]
            kind = "text/javascript" if name.endswith(".js") else "text/html"
            route.fulfill(body=files[name], content_type=f"{kind}; charset=utf-8")

        page.unroute("http://course.test/**")
        page.route("http://course.test/**", answer)
        page.goto("http://course.test/site.html")
        return page, page.frame_locator("iframe")

    yield opened
    context.close()
    assert not troubles


def asked(frame: FrameLocator, number: int) -> Any:
    return frame.locator("form.question").nth(number)


def leave(page: Page) -> dict[str, Any]:
    """Leave the lesson; what the run-time keeps, which took every value that was set."""
    page.evaluate("document.querySelector('iframe').src = 'gone.html'")
    page.wait_for_function("finished === 1")
    refused = [one for one in page.evaluate("said") if one[2:] != ["true", "0"]]
    assert refused == []
    return page.evaluate(CORE)


@with_runtime
def test_a_run_time_keeps_what_was_answered_until_the_lesson_is_complete(course: Opened) -> None:
    runtime = RUNTIME.read_text(encoding="utf-8")
    html = file_of(LESSON)
    page, frame = course(html, runtime)
    asked(frame, 0).get_by_label("the second").check()
    asked(frame, 0).get_by_role("button", name="Check").click()
    expect(asked(frame, 0).get_by_role("status")).to_contain_text("Right:")
    for _ in range(2):
        asked(frame, 1).get_by_role("textbox").fill("300,5")
        asked(frame, 1).get_by_role("button", name="Check").click()
    first = leave(page)
    assert first["core"]["lesson_status"] == "incomplete"
    assert first["core"]["exit"] == "suspend"
    assert first["core"]["score"]["raw"] == "33.3"
    wanted = {
        "0": ("step-1-question-1_Which_one_", "choice", "b", "b", "correct"),
        "1": ("step-1-question-2_How_many_", "numeric", "300.5", str(1000 / 3), "wrong"),
    }
    keys = ("id", "type", "student_response", "result")
    for place, (name, kind, given, pattern, result) in wanted.items():
        kept = first["interactions"][place]
        assert [kept[key] for key in keys] == [name, kind, given, result]
        assert kept["correct_responses"]["0"]["pattern"] == pattern

    # The next visit begins with what was answered, and asks only what is left.
    core = {"lesson_status": "incomplete", "entry": "resume"}
    page, frame = course(html, runtime, {**first, "core": core})
    expect(asked(frame, 0).get_by_role("status")).to_contain_text("Right: “the second”")
    expect(asked(frame, 0).get_by_label("the second")).to_be_checked()
    expect(asked(frame, 0)).to_contain_text("It was the second.")
    expect(asked(frame, 1).get_by_role("textbox")).to_have_value("300,5")
    expect(asked(frame, 1).get_by_role("status")).to_contain_text("The answer is 333.3")
    assert page.evaluate("API.cmi.core.lesson_status") == "incomplete"
    asked(frame, 2).get_by_role("textbox").fill("Mary")
    asked(frame, 2).get_by_role("textbox").press("Enter")
    assert page.evaluate("API.cmi.core.lesson_status") == "completed"
    asked(frame, 3).get_by_role("button", name="Show the answer").click()
    last = leave(page)
    assert last["core"]["exit"] == ""
    assert last["core"]["score"]["raw"] == "66.7"
    got = [last["interactions"][str(place)] for place in range(4)]
    assert [[one[key] for key in keys[1:]] for one in got[2:]] == [
        ["fill-in", "Mary", "correct"],
        ["performance", "", "neutral"],
    ]


@with_runtime
def test_answers_to_other_questions_and_broken_data_are_not_taken(course: Opened) -> None:
    runtime = RUNTIME.read_text(encoding="utf-8")
    page, frame = course(file_of(LESSON), runtime)
    asked(frame, 0).get_by_role("button", name="Show the answer").click()
    kept = leave(page)["suspend_data"]
    changed = LESSON.replace("'the second'", "'the third'")
    for text, data in ((changed, kept), (LESSON, "no data"), (LESSON, "[0, 1]"), (LESSON, "null")):
        page, frame = course(file_of(text), runtime, {"suspend_data": data})
        expect(asked(frame, 0).get_by_role("button", name="Check")).to_be_enabled()
        assert leave(page)["core"]["lesson_status"] == "incomplete"


@with_runtime
def test_a_lesson_without_questions_is_complete_once_it_was_seen(course: Opened) -> None:
    text = f"{LESSON.partition('## The first')[0]}## The first\n\nText.\n"
    page, _ = course(file_of(text), RUNTIME.read_text(encoding="utf-8"))
    page.wait_for_function("API.cmi.core.lesson_status === 'completed'")
    assert leave(page)["core"]["score"]["raw"] == ""


def test_a_page_around_it_hears_one_statement_per_question(course: Opened) -> None:
    page, frame = course(file_of(LESSON))
    asked(frame, 0).get_by_label("the first").check()
    asked(frame, 0).get_by_role("button", name="Check").click()
    asked(frame, 1).get_by_role("textbox").fill("1")
    asked(frame, 1).get_by_role("button", name="Check").click()
    expect(asked(frame, 1).get_by_role("status")).to_contain_text("Not yet")
    asked(frame, 1).get_by_role("textbox").fill("333,5")
    asked(frame, 1).get_by_role("button", name="Check").click()
    page.wait_for_function("heard.length >= 2")
    first, second = page.evaluate("heard")
    assert first["type"] == "xapi"
    said = first["statement"]
    assert said["verb"]["id"] == "http://adlnet.gov/expapi/verbs/answered"
    assert "actor" not in said
    assert said["object"]["id"] == "urn:gptviz:lesson:own:step-1-question-1"
    about = said["object"]["definition"]
    assert about["description"] == {"en": "Which one?"}
    assert about["interactionType"] == "choice"
    assert about["correctResponsesPattern"] == ["b"]
    assert about["choices"][1] == {"id": "b", "description": {"en": "the second"}}
    assert said["result"] == {"response": "a", "success": False, "completion": True}
    parent = said["context"]["contextActivities"]["parent"][0]
    assert parent["id"] == "urn:gptviz:lesson:own"
    assert parent["definition"]["name"] == {"en": "A title & <b>more</b>"}
    result = second["statement"]["result"]
    assert result == {"response": "333.5", "success": True, "completion": True}
    low, _, high = second["statement"]["object"]["definition"]["correctResponsesPattern"][
        0
    ].partition("[:]")
    assert (float(low), float(high)) == pytest.approx((1000 / 3 - 1, 1000 / 3 + 1))


BROKEN = """window.API = new Proxy({}, {
    get: () => () => { throw new Error("the run-time is broken"); } });"""


@pytest.mark.parametrize("runtime", ["", BROKEN], ids=["none", "broken"])
def test_without_a_run_time_that_works_it_is_the_same_lesson(course: Opened, runtime: str) -> None:
    _, frame = course(file_of(LESSON), runtime)
    asked(frame, 2).get_by_role("textbox").fill("Mary")
    asked(frame, 2).get_by_role("button", name="Check").click()
    expect(asked(frame, 2).get_by_role("status")).to_contain_text("Right:")
    expect(asked(frame, 0).get_by_role("button", name="Check")).to_be_enabled()


@with_runtime
@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_that_is_typed_is_markup_on_the_next_visit(course: Opened, hostile: str) -> None:
    runtime = RUNTIME.read_text(encoding="utf-8")
    page, frame = course(file_of(LESSON), runtime)
    asked(frame, 2).get_by_role("textbox").fill(hostile)
    asked(frame, 2).get_by_role("button", name="Check").click()
    kept = leave(page)
    page, frame = course(file_of(LESSON), runtime, {"suspend_data": kept["suspend_data"]})
    expect(asked(frame, 2).get_by_role("status")).to_contain_text("The answer is")
    assert frame.locator("body").evaluate("document.title") == "A title & <b>more</b> · gptviz"
