"""A lesson beside its live pages: a click on the right part answers its question, and on a phone
the page stays in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

import gptviz
from gptviz.lessons.answering import answer_to
from gptviz.lessons.library import SHIPPED, library
from gptviz.lessons.quantities import Quantities
from tests.browser.machinery import Server, Visit, box_of, visiting
from tests.browser.test_words_of_charts import FAULTS

pytestmark = [pytest.mark.browser, pytest.mark.full]
LESSONS = library(SHIPPED).lessons
# Of every page the first step that opens it, in a decoder of the project.
STEPS = {
    one.page.page: (name, number)
    for name, lesson in reversed(LESSONS.items())
    for number, one in reversed(list(enumerate(lesson.steps, 1)))
    if one.page is not None and one.page.page not in ("lessons", "runs", "train", "open_model")
}
# What the lists on a page are set to and do not show whole.
CUT_CHOICES = """() => [...document.querySelectorAll('[data-testid=stMain] [data-testid=stSelectbox] input')]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).map((one) => one.value)"""


def in_explorer(page: Page, answer: str) -> None:
    block, head = answer.split(".")
    page.locator(f".head[data-block='{block}'][data-head='{head}']").click()
    page.wait_for_url(re.compile(f"head={head}"))


def in_strip(page: Page, answer: str) -> None:
    page.locator(f".st-key-tokens-strip button.chip >> nth={answer}").click()
    page.wait_for_url(re.compile(f"position={answer}"))


def in_list(page: Page, answer: str) -> None:
    box = page.get_by_role("combobox", name=re.compile("Split further"))
    # a page that is scrolled shuts its lists
    box.evaluate("(box) => box.scrollIntoView({ block: 'center' })")
    box.fill(answer)
    page.get_by_role("option", name=answer, exact=True).click()
    page.wait_for_url(re.compile(f"part={answer}"))


@pytest.mark.parametrize(
    ("name", "wrong", "choose"),
    [
        ("03-attention-is-an-average", "0.0", in_explorer),
        ("08-from-logits-to-a-draw", "3", in_strip),
        ("12-taking-a-head-away", "blocks.0.attention.head.0", in_list),
    ],
)
def test_choosing_the_right_part_of_the_page_answers_and_a_wrong_one_does_not(
    visit: Visit, name: str, wrong: str, choose: Callable[[Page, str], None]
) -> None:
    lesson = LESSONS[name]
    ((number, question),) = [
        (i, one)
        for i, step in enumerate(lesson.steps)
        for one in step.questions
        if one.kind == "state"
    ]
    functions = Quantities(
        lambda model, step: gptviz.load(model, "cpu", step), lesson.model
    ).functions
    right = str(answer_to(question, functions).value)
    shown = lesson.steps[number].page
    assert shown is not None
    page = visit.open(
        shown.page,
        **{"model": lesson.model, **shown.query, "lesson": name, "lesson_step": number + 1},
    )
    visit.drawn()
    sheet = page.get_by_test_id("stSidebar")
    check = sheet.get_by_role("button", name="Check").nth(
        lesson.steps[number].questions.index(question)
    )
    check.click()
    expect(sheet).to_contain_text("Choose it on the page first")
    visit.settle()
    for part, said in ((wrong, "Not yet. "), (right, "That is right")):
        choose(page, part)
        visit.settle()
        check.click()
        expect(sheet).to_contain_text(said)
        visit.settle()
    page.wait_for_url(re.compile(rf"lesson_done={number + 1}\.\d+r"))


@pytest.fixture(scope="module")
def learner(browser: Browser, server: Server) -> Iterator[Visit]:
    """A visit that goes from lesson to lesson."""
    with visiting(browser, server, width=1280, height=720) as begun:
        yield begun


@pytest.mark.parametrize(("name", "number"), STEPS.values(), ids=STEPS)
def test_in_front_of_a_class_half_a_window_shows_what_a_step_is_about(
    learner: Visit, name: str, number: int
) -> None:
    lesson = LESSONS[name]
    shown = lesson.steps[number - 1].page
    assert shown
    address = {
        "model": lesson.model,
        **shown.query,
        "lesson": name,
        "lesson_step": number,
        "present": 1,
    }
    learner.page.set_viewport_size({"width": 1280, "height": 720})
    page = learner.go(shown.page, **address)
    learner.drawn()
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px", (
        "usual type has 16"
    )
    assert not page.get_by_test_id("stHeader").is_visible()
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stMain] :is(.stBidiComponent, [data-testid=stPlotlyChart])')]
            .map((view) => view.getBoundingClientRect())
            .some((box) => box.height >= 200 && Math.min(box.bottom, 721) - box.top >= Math.min(box.height, 359))"""
    )
    main = page.get_by_test_id("stMain")
    main.hover()
    page.mouse.wheel(0, -2_000)
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop === 0")
    learner.settle()
    assert main.evaluate("(page) => page.scrollTop") == 0, "who scrolls is left alone"


@pytest.mark.parametrize("name", LESSONS)
def test_beside_a_lesson_no_choice_and_no_word_of_a_chart_is_cut(learner: Visit, name: str) -> None:
    lesson = LESSONS[name]
    learner.page.set_viewport_size({"width": 1280, "height": 800})
    for number, step in enumerate(lesson.steps, 1):
        # its map is of many words, which are cut where they crowd
        if (shown := step.page) is None or shown.page == "train":
            continue
        address = {
            "model": lesson.model,
            **shown.query,
            "lesson": name,
            "lesson_step": number,
            "present": 0,
        }
        learner.go("" if shown.page == "home" else shown.page, **address)
        assert learner.drawn().evaluate(CUT_CHOICES) == [], number
        assert [
            fault for fault in learner.page.evaluate(FAULTS) if fault.startswith("cut")
        ] == [], number


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["laptop", "phone"])
@pytest.mark.parametrize("name", ["01-tokens", "06-positions", "11-reading-and-writing"])
def test_who_answers_sees_the_whole_question_its_button_and_what_is_said_of_the_answer(
    learner: Visit, name: str, size: tuple[int, int]
) -> None:
    lesson = LESSONS[name]
    number, step = next(
        (number, step)
        for number, step in enumerate(lesson.steps, 1)
        if step.page and any(one.kind in ("choice", "number") for one in step.questions)
    )
    assert step.page
    asked = [one.kind in ("choice", "number") for one in step.questions].index(True)
    learner.page.set_viewport_size({"width": size[0], "height": size[1]})
    address = {"model": lesson.model, **step.page.query, "lesson": name, "lesson_step": number}
    page = learner.go("" if step.page.page == "home" else step.page.page, **address)
    learner.drawn()
    question = page.locator(f".st-key-question-{asked}")
    check = question.get_by_role("button", name="Check")
    question.locator("input").first.focus()
    expect(check).to_be_in_viewport(ratio=1)
    if step.questions[asked].kind == "choice":
        question.locator("label").nth(1).click()
    else:
        question.locator("input").fill("98765")
        page.keyboard.press("Enter")
    learner.settle()
    check.click()
    expect(question.get_by_test_id("stAlert")).to_be_in_viewport(ratio=0.99)
    if size[0] < 640:
        box = box_of(page.get_by_test_id("stMain"))
        assert box["height"] >= size[1] / 2 - 1, "its picture has half of the screen meanwhile"


def test_on_a_phone_the_lesson_is_a_sheet_that_folds_and_the_page_below_it_is_in_use(
    browser: Browser, server: Server
) -> None:
    with visiting(browser, server, width=390, height=844) as visit:
        page = visit.open("positions", model="ladder-8", lesson="06-positions", lesson_step=1)
        sheet = page.get_by_test_id("stSidebar")
        main = page.get_by_test_id("stMain")
        fold = sheet.locator("summary").first

        def heights() -> tuple[float, float]:
            above = box_of(sheet)
            below = box_of(main)
            assert above["y"] == 0
            assert below["y"] == pytest.approx(above["height"], abs=1), (
                "the sheet covers nothing of the page"
            )
            assert below["y"] + below["height"] == pytest.approx(844, abs=1)
            return above["height"], below["height"]

        assert heights()[1] >= 844 / 2 - 1
        assert main.evaluate("(page) => { page.scrollTo(0, 300); return page.scrollTop; }") == 300
        expect(page.locator(".st-key-page-tools")).not_to_be_visible()
        page.mouse.click(195, 840)  # on the page: Streamlit would now slide its side bar away
        visit.settle()
        assert heights()[1] >= 844 / 2 - 1
        fold.focus()
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("link", name="Next", exact=True)).not_to_be_visible()
        page.wait_for_function("document.querySelector('[data-testid=stMain]').clientHeight > 750")
        assert heights()[0] < 90
        expect(page.locator(".st-key-page-tools")).to_be_visible()
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("link", name="Next", exact=True)).to_be_attached()
        page.wait_for_function("document.querySelector('[data-testid=stMain]').clientHeight < 600")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
