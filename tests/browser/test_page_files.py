"""A page that was taken home, opened from the disk by a browser without any network."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import gptviz
from gptviz.__main__ import main
from gptviz.generate.sampling import Sampling
from gptviz.lessons.lesson import parse_lesson
from gptviz.lessons.translation import translated_lesson
from gptviz.runs.sharing import unpack
from gptviz.takehome.lesson_file import lesson_content
from gptviz.takehome.page import Code, ControlValue, PageContent, PlainText, read_page
from gptviz.takehome.page_file import as_html
from tests.browser.contrast import LEAST
from tests.browser.machinery import HOSTILE, PATIENCE
from tests.figures.contrast import contrast

pytestmark = pytest.mark.browser


@pytest.fixture
def without_network(browser: Browser) -> Iterator[Callable[[int, int], Page]]:
    """Opens a page of this width and height that has no network; at the end nothing was asked of
    one, and no script failed.
    """
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def opened(width: int, height: int) -> Page:
        context = browser.new_context(offline=True, viewport={"width": width, "height": height})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console",
            lambda message: troubles.append(message.text) if message.type == "error" else None,
        )
        page.on(
            "request",
            lambda request: (
                troubles.append(request.url)
                if not request.url.startswith(("file:", "blob:"))
                else None
            ),
        )
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


def test_its_views_are_alive_without_a_server(
    without_network: Callable[[int, int], Page], tmp_path: Path
) -> None:
    prompt = "O Romeo, Romeo"
    file = tmp_path / "page.html"
    file.write_text(
        as_html(
            read_page(
                "attention", {"model": "ladder-8", "prompt": prompt, "block": "1", "head": "0"}
            )
        ),
        "utf-8",
    )
    page = without_network(1280, 900)
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("What does each head look at?")
    chosen = page.locator(".head[aria-pressed=true]")
    expect(chosen).to_have_attribute("aria-label", re.compile(r"[Bb]lock 1, head 0"))
    other = page.locator(".head").first
    other.click()
    expect(other).to_have_attribute("aria-pressed", "true")
    file.write_text(as_html(read_page("home", {"model": "ladder-8", "prompt": prompt})), "utf-8")
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "How does a transformer guess the next token?"
    )
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_the_prompt_has_all_of_its_white_space(
    without_network: Callable[[int, int], Page], tmp_path: Path
) -> None:
    prompt = " \nROMEO:\n\n  But  soft\t!  "
    pieces = (ControlValue("Prompt", prompt), PlainText(prompt), Code(prompt, ""))
    file = tmp_path / "page.html"
    file.write_text(as_html(PageContent("x", {"prompt": prompt}, pieces)), "utf-8")
    page = without_network(1280, 900)
    page.goto(file.as_uri())
    for place in (".settings", ".plain", "pre", "footer p"):
        assert prompt in page.locator(place).inner_text(), place


def hexadecimal(colour: str) -> str:
    """A colour "rgb(…)" as "#RRGGBB"."""
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


@pytest.mark.full
def test_its_figures_can_be_read_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(as_html(read_page("patching", {"model": "sentences"})), "utf-8")
    context = browser.new_context(offline=True, color_scheme="dark")
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    page.goto(file.as_uri())
    label = page.locator(".figure .xtick text").first
    expect(label).to_be_visible()
    text = label.evaluate("one => getComputedStyle(one).fill")
    ground = label.evaluate("one => getComputedStyle(one.closest('.figure')).backgroundColor")
    painted = page.locator(".figure .main-svg").first.evaluate(
        "one => getComputedStyle(one).backgroundColor"
    )
    assert painted in (ground, "rgba(0, 0, 0, 0)")
    assert contrast(hexadecimal(text), hexadecimal(ground)) >= LEAST
    context.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page "Try it" in a folder."""
    folder = tmp_path_factory.mktemp("gallery")
    assert main(["gallery", "--out", str(folder), "--only", "try", "--without-thumbnails"]) == 0
    first = [
        folder / "try.html",
        folder / "models" / "sentences.js",
        *(folder / "shared").iterdir(),
    ]
    assert sum(file.stat().st_size for file in first) < 3 * 10**6
    return (folder / "try.html").as_uri()


def answered(page: Page, view: str) -> None:
    """Wait for an answer in this view."""
    expect(page.locator(f"body[data-shown={view}]")).to_have_count(1)


def test_a_prompt_is_typed_and_answered_without_any_network(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(1280, 900)
    page.goto(live)
    answered(page, "next_token")
    prompt = "Mary saw the old"
    page.get_by_label("Prompt").fill(prompt)
    lm = gptviz.load("sentences")
    ids = lm.encode(prompt)
    chances = lm.model(ids[None])[0, -1].softmax(-1)
    best = lm.tokenizer.label(int(chances.argmax()))
    expect(page.get_by_role("status").first).to_contain_text(
        f"After “old” the model’s guess is “{best}”, with"
    )
    expect(page.locator("#tokens .chip")).to_have_text(prompt.split())
    page.get_by_label("Prompt").fill("Mary saw the zebra")
    expect(page.get_by_role("status").first).to_contain_text(
        "Not in its vocabulary, so it reads another token instead: zebra."
    )
    page.get_by_label("Prompt").fill("")
    expect(page.get_by_role("status").first).to_have_text(
        "Type a prompt: this one has nothing that the model reads."
    )
    page.get_by_label("Prompt").fill(prompt)
    expect(page.get_by_role("status").first).to_contain_text("After “old”")
    # A token that is taken goes on with the prompt.
    page.get_by_role("button", name="Take it").click()
    expect(page.get_by_label("Prompt")).to_have_value(re.compile(rf"{prompt} \S+"))
    page.get_by_role("button", name="Attention").click()
    answered(page, "attention")
    page.locator(".head").last.click()
    expect(page.locator(".head[aria-pressed=true]")).to_have_attribute(
        "aria-label", re.compile("[Bb]lock 2, head 3")
    )


def test_a_text_grows_and_takes_another_branch(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(1280, 900)
    prompt = "O Romeo"
    page.goto(f"{live}?model=ladder-8&prompt={prompt}&view=generate&temperature=0&seed=5")
    answered(page, "generate")
    written = page.locator("#view .status")
    expect(written).to_have_text("40 tokens")
    lm = gptviz.load("ladder-8")
    generation = lm.generation(prompt, Sampling(temperature=0))
    list(islice(generation, 40))
    chips = [lm.tokenizer.label(i) for i in generation.ids[0].tolist()]
    assert (
        page.locator("#view .run.strong button.chip:not(.prompt)").all_text_contents()
        == chips[-40:]
    )
    page.get_by_role("button", name="Play", exact=True).click()
    expect(written).to_have_text(re.compile("4[3-9] tokens"))
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Restart").click()
    expect(written).to_have_text("0 tokens")
    page.get_by_label("Temperature", exact=True).fill("1.5")
    page.get_by_label("Temperature", exact=True).press("Enter")
    page.get_by_role("button", name="Step").click()
    expect(written).to_have_text("1 token")
    assert parse_qs(urlsplit(page.url).query)["temperature"] == ["1.5"]


def test_past_the_context_a_text_grows_slowly_and_a_new_prompt_is_heard(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(1280, 900)
    prompt = "that is the question " * 15  # of 315 characters, and the model reads 256
    page.goto(f"{live}?model=shakespeare&prompt={prompt}&view=generate")
    answered(page, "generate")
    assert page.get_by_role("status").first.inner_text().startswith("After “␣”")
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    expect(stop).to_be_hidden()
    written = page.locator("#view .status").inner_text()
    assert 1 <= int(written.split()[0]) < 40
    # The next text is not waited for either.
    page.get_by_label("Seed").fill("3")
    page.get_by_label("Seed").press("Enter")
    page.get_by_role("textbox", name="Prompt").fill(f"{prompt}that")
    expect(page.get_by_role("status").first).to_contain_text("After “t”")
    expect(stop).to_be_visible()
    page.get_by_role("textbox", name="Prompt").fill("O Romeo")
    expect(page.get_by_role("status").first).to_contain_text("After “o”")
    expect(page.locator("#view .status")).to_have_text("40 tokens")
    expect(stop).to_be_hidden()
    assert "".join(page.locator("#view .chip.prompt").all_text_contents()) == "O␣Romeo"


def test_the_page_has_loaded_when_it_shows_something(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    """A picture from the command line is taken of a page that has loaded."""
    page = without_network(1280, 900)
    page.goto(live, wait_until="load")
    assert page.evaluate("document.body.dataset.shown") == "next_token"


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("model=nobody", {"model": "nobody"}),
        ("model=toString&view=__proto__", {"model": "toString", "view": "__proto__"}),
        ("position=abc", {"position": "abc"}),
        ("position=9999", {"position": "9999"}),
        ("view=generate&temperature=1e999&top_k=-5&seed=1.5&top_p=x",
         {"temperature": "1e999", "top_k": "-5", "seed": "1.5", "top_p": "x"}),
        ("view=next_token&temperature=abc", {"temperature": "abc"}),
        ("view=attention&block=99&query=-1", {"block": "99", "query": "-1"}),
        ("view=lens&layer=<img src=x>&colour=red", {"layer": "<img src=x>", "colour": "red"}),
        ("view=generate&attended=9.9", {"attended": "9.9"}),
        ("blocks.0.mlp=zero", {"blocks.0.mlp": "zero"}),
        ("view=generate&temperature=0.5&seed=7&position=1", {}),
    ],
)  # fmt: skip
def test_what_a_link_asks_for_and_is_not_there_is_named(
    without_network: Callable[[int, int], Page], live: str, query: str, refused: dict[str, str]
) -> None:
    page = without_network(1280, 900)
    errors: list[object] = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(f"{live}?{query}", wait_until="load")
    assert page.get_by_role("status").first.inner_text().startswith("After “")
    said = " ".join(page.get_by_text("which is not available here").all_inner_texts())
    assert said.count("which is not available here") == len(refused)
    for key, value in refused.items():
        assert f"{key} = “{value}”, which is not available here" in said
    assert not errors


def test_a_link_opens_the_same_state_and_leads_to_the_app(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(390, 844)
    page.goto(f"{live}?model=ladder-8&prompt=O+Romeo&view=attention&block=4&head=2")
    answered(page, "attention")
    expect(page.get_by_label("Model")).to_have_value("ladder-8")
    expect(page.get_by_label("Prompt")).to_have_value("O Romeo")
    expect(page.locator(".head[aria-pressed=true]")).to_have_attribute(
        "aria-label", re.compile("[Bb]lock 4, head 2")
    )
    page.locator(".head").first.click()
    expect(page.locator(".head").first).to_have_attribute("aria-pressed", "true")
    link = page.get_by_role("link", name="Open in the app")
    expect(link).not_to_have_attribute("href", re.compile("block=4"))
    address = urlsplit(link.get_attribute("href") or "")
    assert (address.netloc, address.path) == ("localhost:8501", "/attention")
    asked = parse_qs(address.query)
    assert (asked["model"], asked["prompt"], asked.get("block", ["0"])) == (
        ["ladder-8"],
        ["O Romeo"],
        ["0"],
    )
    page.get_by_role("button", name="Logit lens").click()
    answered(page, "lens")
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    reopened = page.url
    page.goto("about:blank")
    page.goto(reopened)
    answered(page, "lens")
    # A model without blocks has guesses and no attention.
    page.get_by_label("Model").select_option("ladder-0")
    page.get_by_role("button", name="Attention").click()
    expect(page.get_by_role("status").first).to_have_text(
        "This model has no blocks and therefore no attention."
    )


@pytest.mark.full
def test_a_gallery_is_used_from_a_folder_and_asks_nobody(
    without_network: Callable[[int, int], Page], tmp_path: Path
) -> None:
    asked = ["--only", "01-tokens", "--only", "attention", "--without-thumbnails"]
    assert main(["gallery", "--out", str(tmp_path), *asked]) == 0
    page = without_network(390, 844)
    page.goto((tmp_path / "index.html").as_uri())
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    page.get_by_role("link", name="1. What is a token?").click()
    # "Into how many tokens does this model cut “O Romeo!”?" It reads characters.
    first = page.locator("form.question").first
    said = first.get_by_role("status")
    first.get_by_role("textbox").fill("3")
    first.get_by_role("button", name="Check").click()
    expect(said).to_contain_text("Not yet. Try once more.")
    expect(said).to_contain_text("Count the marks and the gap")
    first.get_by_role("textbox").fill("8")
    first.get_by_role("textbox").press("Enter")
    expect(said).to_contain_text("Right: 8")
    second = page.locator("form.question").nth(1)
    second.get_by_role("button", name="Show the answer").click()
    expect(second.get_by_role("status")).to_contain_text("The answer is")
    expect(page.locator("[data-view]:not([data-shown])")).to_have_count(0)
    page.go_back()
    page.get_by_role("link", name="Attention", exact=True).click()
    other = page.locator(".head").first
    other.click()
    expect(other).to_have_attribute("aria-pressed", "true")


def train(page: Page, steps: int) -> None:
    """Begin to train a small model on names."""
    page.get_by_text("Train your own").click()
    page.get_by_label("Steps", exact=True).fill(str(steps))
    page.get_by_role("button", name="Train", exact=True).click()


def test_a_model_is_trained_and_looked_at_at_any_step_without_a_network(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(390, 844)
    page.goto(live)
    answered(page, "next_token")
    train(page, 50)
    learned = page.get_by_role("status").filter(
        has_text="After 50 steps the loss on held-out names"
    )
    expect(learned).to_be_visible()
    loss, blind = map(float, re.findall(r"\d+\.\d+", learned.inner_text()))
    assert blind == pytest.approx(math.log(27), abs=0.01)
    assert loss < blind - 0.2
    expect(page.locator("#model")).to_have_value("my-names")
    expect(
        page.get_by_role("list", name="What it writes").get_by_role("listitem").first
    ).to_contain_text("Step 50:")
    assert page.locator("#curve circle").count() == page.get_by_role("listitem").count()
    for name, view in (
        ("Attention", "attention"),
        ("Logit lens", "lens"),
        ("Generate", "generate"),
        ("Next token", "next_token"),
    ):
        page.get_by_role("button", name=name, exact=True).click()
        answered(page, view)
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    # At its first snapshot every token is about equally likely.
    guess = page.get_by_role("status").filter(has_text="the model’s guess is")
    percent = lambda: float(re.findall(r"with (\d+\.\d+) %", guess.inner_text())[0])  # noqa: E731
    assert percent() > 100 / 27 + 3
    steps = page.get_by_label("Steps of training")
    steps.press("Home")
    expect(steps).to_have_attribute("aria-valuetext", "0")
    expect(page).to_have_url(re.compile("step=0"))
    expect(guess).to_have_text(re.compile(r"with [345]\.\d+ %"))
    page.reload()
    expect(page.get_by_text("The link asks for model = “my-names”")).to_be_visible()


def test_stop_keeps_what_was_learned_and_the_page_answers_meanwhile(
    without_network: Callable[[int, int], Page], live: str, tmp_path: Path, home: Path
) -> None:
    page = without_network(1280, 900)
    page.goto(live)
    answered(page, "next_token")
    train(page, 5000)
    expect(page.locator("#model")).to_have_value("my-names")
    guess = page.get_by_role("status").filter(has_text="the model’s guess is")
    page.get_by_label("Prompt").fill("mar")
    expect(guess).to_contain_text("After “r” the model’s guess is")
    page.get_by_role("button", name="Stop", exact=True).click()
    learned = page.get_by_role("status").filter(has_text="the loss on held-out names")
    expect(learned).to_be_visible()
    (step,) = re.findall(r"After (\d+) steps?", learned.inner_text())
    assert 0 < int(step) < 5000
    expect(page.locator("#steps output")).to_have_text(step)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save for gptviz (zip)").click()
    download.value.save_as(tmp_path / "my-names.zip")
    lm = gptviz.load(unpack(tmp_path / "my-names.zip").name)
    assert lm.card.steps == int(step)
    # Dropped on the page it opens again, and shows the same.
    said = guess.inner_text()
    page.get_by_label("Bring your own").set_input_files(tmp_path / "my-names.zip")
    expect(page.get_by_text("my-names-2 is open")).to_be_visible()
    page.get_by_label("Prompt").fill("mar")
    expect(page.locator("#model")).to_have_value("my-names-2")
    expect(guess).to_have_text(said)


def test_what_is_typed_or_dropped_is_never_markup(
    without_network: Callable[[int, int], Page], live: str
) -> None:
    page = without_network(1280, 900)
    page.goto(live)
    answered(page, "next_token")
    page.get_by_text("Train your own").click()
    page.get_by_label("Learn from").select_option("lines")
    text = page.get_by_label("Text", exact=True)
    text.fill("anna")
    page.get_by_label("Steps", exact=True).fill("10")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(
        page.get_by_text("the text has 6 characters, and at least 22 are needed")
    ).to_be_visible()
    text.fill("\n".join(9 * HOSTILE[:5]))
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("After 10 steps the loss on held-out lines")).to_be_visible()
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(HOSTILE[0], b"x")
    file = {"name": "model.zip", "mimeType": "", "buffer": content.getvalue()}
    page.get_by_label("Bring your own").set_input_files(file)  # type: ignore[arg-type]
    expect(page.get_by_text(f"“{HOSTILE[0]}” is no name for a file")).to_be_visible()
    assert page.locator("main img").count() == 0
    assert page.title() == "Try it · gptviz"


def test_a_lesson_in_hebrew_runs_from_right_to_left_and_its_pages_do_not(
    without_network: Callable[[int, int], Page], tmp_path: Path
) -> None:
    words = {
        "A title": "כותרת השיעור",
        "The first": "הצעד הראשון",
        "The prompt is “O Romeo”.": "הפרומפט הוא “O Romeo”.",
        "How many?": "כמה?",
    }
    text = (
        "---\ntitle: A title\nabout: A sentence.\n---\n## The first\n\n"
        "The prompt is “O Romeo”.\n\n```page\nopen: attention\n```\n\n"
        "```question\nask: How many?\nkind: number\nanswer: '3'\n```\n"
    )
    lesson = translated_lesson(parse_lesson(text, "own"), "he", lambda line: words.get(line, ""))
    inside = PageContent("attention", {}, (PlainText("Every token reads."),))
    file = tmp_path / "lesson.html"
    file.write_text(as_html(lesson_content(lesson, {}, lambda name, query: inside)), "utf-8")
    for width, height in ((1280, 800), (390, 844)):
        page = without_network(width, height)
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.lang") == "he"
        directions = {
            name: page.locator(name).first.evaluate("(one) => getComputedStyle(one).direction")
            for name in ("h1", "h2", "form.question", "section.page")
        }
        assert directions == {
            "h1": "rtl",
            "h2": "rtl",
            "form.question": "rtl",
            "section.page": "ltr",
        }
        # The letters begin at the right edge, and nothing is wider than the window.
        edges = page.locator("h1").evaluate(
            """(one) => {
                const range = document.createRange();
                range.selectNodeContents(one);
                return [range.getBoundingClientRect().right, one.getBoundingClientRect().right];
            }"""
        )
        assert edges[0] == pytest.approx(edges[1], abs=2)
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
