"""The generation tree in a real browser: what a click does, what its cards say, and what never asks the server."""

from __future__ import annotations

import base64
import csv
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

import gptviz
from gptviz.components import generation_tree, kit
from gptviz.components.generation_tree import Look
from gptviz.generate.generation import Generation
from gptviz.generate.tree import Tree
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from tests.browser.machinery import HOSTILE, ROOT, Server, Visit, check_on_a_phone, serve, visiting
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

# Small and soon past its context of 64 tokens.
MODEL, PROMPT = "generator", "ROMEO:\nO, she doth teach"
PATIENCE = 60_000
Row = dict[str, str]


def opened(visit: Visit, prompt: str = PROMPT, model: str = MODEL, **query: object) -> Page:
    page = visit.open("generate", model=model, prompt=prompt, **query)
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    return page


def download(page: Page, tool: str) -> Path:
    if tool == "Numbers":
        page.get_by_role("button", name="Numbers", exact=True).click()
        with page.expect_download() as begun:
            page.get_by_role("button", name="Download CSV").click()
        page.keyboard.press("Escape")
    else:
        with page.expect_download() as begun:
            page.get_by_role("button", name=tool, exact=True).click()
    return Path(begun.value.path())


def rows(page: Page) -> list[Row]:
    """The tree with all digits, as the CSV has it."""
    with download(page, "Numbers").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def path(table: list[Row]) -> list[Row]:
    return sorted((row for row in table if row["on the current path"] == "yes"), key=lambda row: int(row["position"]))


def tokens(table: list[Row]) -> list[int]:
    return [int(row["token id"]) for row in path(table)]


def chips(page: Page) -> Locator:
    """The chips of the current path after the prompt, in their order."""
    return page.locator(".run.strong button.chip:not(.prompt)")


def at_length(page: Page, length: int) -> None:
    """Wait until the text has so many tokens."""
    expect(page.locator(".status")).to_have_text(re.compile(rf"^{length:,} tokens?\b"), timeout=PATIENCE)


def length(page: Page) -> int:
    return int(page.locator(".status").inner_text().split(" ")[0].replace(",", ""))


def grown(table: list[Row], model: str = MODEL, prompt: str = PROMPT) -> Tree:
    """The current path again, by the library."""
    tree = Tree(gptviz.load(model).generation(prompt))
    for token in tokens(table):
        tree.take(token)
    return tree


def test_a_click_on_what_may_come_next_appends_exactly_that_token(visit: Visit) -> None:
    page = opened(visit)
    before = rows(page)
    ghost = page.locator(".ghost").nth(2)
    token = int(ghost.get_attribute("data-token") or "")
    ghost.click()
    at_length(page, len(tokens(before)) + 1)
    after = rows(page)
    assert tokens(after) == [*tokens(before), token]
    assert path(after)[-1]["how chosen"] == "chosen by hand"
    assert len(after) == len(before) + 1


def test_undoing_taking_another_token_and_clicking_back_restores_every_digit(visit: Visit) -> None:
    page = opened(visit)
    before = rows(page)
    for _ in range(3):
        at = length(page)
        page.get_by_role("button", name="Undo").click()
        at_length(page, at - 1)
    page.locator(".ghost").last.click()
    at_length(page, len(tokens(before)) - 2)
    page.get_by_role("button", name="Step").click()
    at_length(page, len(tokens(before)) - 1)
    assert tokens(rows(page)) != tokens(before)
    page.locator(f".chip[data-node='{path(before)[-1]['node']}']").click()
    at_length(page, len(tokens(before)))
    after = {row["node"]: row for row in rows(page)}
    assert path(list(after.values())) == path(before)
    for row in before:
        assert after[row["node"]] == row


def test_a_click_in_the_middle_goes_there_and_keeps_what_follows_as_a_branch(visit: Visit) -> None:
    page = opened(visit)
    before = rows(page)
    chips(page).nth(9).click()
    at_length(page, 10)
    after = rows(page)
    assert tokens(after) == tokens(before)[:10]
    assert len(after) == len(before)
    page.locator(".chip[data-node='0']").last.click()
    expect(page.locator(".status")).to_have_text(re.compile("^0 tokens"), timeout=PATIENCE)
    page.get_by_role("button", name="Step").click()
    at_length(page, 1)
    assert tokens(rows(page)) == tokens(before)[:1]


@pytest.mark.parametrize("model", ["generator", "ladder-0"])
def test_what_a_card_says_equals_the_tensors(visit: Visit, model: str) -> None:
    page = opened(visit, model=model)
    table = rows(page)
    tree = grown(table, model)
    lm = gptviz.load(model)
    places = [0, 7, len(path(table)) - 1]  # the last one's context has slid
    for head, place in itertools.product(("", "1.2") if lm.model.config.n_layer else ("",), places):
        if lm.model.config.n_layer:
            page.locator(".heads").select_option(head)
        chips(page).nth(place).hover()
        node = tree.path()[place]
        computed = tree.chosen_from(node.id)
        p = computed.logits.double().softmax(-1)
        card = page.locator(".card")
        expect(card).to_have_attribute("data-node", path(table)[place]["node"])
        lines = card.locator(".line")
        shown = {int(line.get_attribute("data-token") or ""): float(line.get_attribute("data-p") or "") for line in lines.all()}
        likely = p.topk(8).indices.tolist()
        assert list(shown)[:8] == likely
        assert set(shown) == {*likely, node.token}
        for token, probability in shown.items():
            assert probability == pytest.approx(float(p[token]), rel=1e-6)
        expect(card.locator(".line.taken")).to_have_attribute("data-token", str(node.token))
        expect(card.locator(".p")).to_have_text(re.compile(re.escape(f"{100 * float(p[node.token]):.3g}"[:3])))
        if not lm.model.config.n_layer:
            expect(card.locator(".attended")).to_have_text("This model has no attention.")
            continue
        attention = computed.attention.double()
        weights = attention.mean((0, 1)) if not head else attention[1, 2]
        items = card.locator(".attended .item")
        assert items.count() == 6
        for item in items.all():
            key = int(item.get_attribute("data-place") or "") - computed.start
            assert float(item.get_attribute("data-weight") or "") == pytest.approx(float(weights[key]), rel=2e-3, abs=1e-6)
        top = [int(item.get_attribute("data-place") or "") for item in items.all()]
        assert float(weights[[one - computed.start for one in top]].sum()) == pytest.approx(
            float(weights.topk(6).values.sum()), rel=1e-2
        )
        tinted = page.locator(".stage .chip.key").count()
        assert tinted == pytest.approx(int((weights >= 0.001).sum()), abs=3)


def test_log_probabilities_and_their_sums_are_those_of_the_library(visit: Visit) -> None:
    page = opened(visit)
    table = rows(page)
    for row, node in zip(path(table), grown(table).path(), strict=True):
        assert float(row["log-probability (nats)"]) == pytest.approx(node.logprob, abs=1e-6)
        assert float(row["sum of the branch (nats)"]) == pytest.approx(node.total, abs=1e-6)
    foot = page.locator(".run.grows .foot")
    assert float(foot.get_attribute("data-total") or "") == float(path(table)[-1]["sum of the branch (nats)"])
    assert page.locator(".foot:visible").count() == 2, "a second branch has its own"


def test_hovering_replaying_and_choosing_a_head_ask_nothing_of_the_server(visit: Visit) -> None:
    page = opened(visit)
    page.mouse.move(2, 2)
    page.wait_for_timeout(1500)
    sent = len(visit.sent)
    for place in (0, 5, 11, 3):
        chips(page).nth(place).hover()
        expect(chips(page).nth(place)).to_have_class(re.compile("focus"))
    page.locator(".heads").select_option("2.1")
    expect(page).to_have_url(re.compile(r"attended=2\.1"))
    page.mouse.move(2, 2)
    steps = page.locator(".player")
    page.get_by_role("button", name="Replay the path").click()
    expect(steps).to_have_attribute("data-step", re.compile(r"\d"), timeout=PATIENCE)
    expect(page.locator(".chip.later").first).to_be_attached()
    page.get_by_role("button", name="Replay the path").click()
    page.locator(".slider").fill("8")
    expect(steps).to_have_attribute("data-step", "7")
    page.get_by_role("button", name="Replay: a token back").click()
    page.get_by_role("button", name="Replay: a token back").click()
    expect(steps).to_have_attribute("data-step", "5")
    expect(page.locator(".card .nth")).to_have_text("token 6")
    page.locator(".slider").press("Escape")
    expect(steps).to_have_attribute("data-step", "")
    expect(page.locator(".chip.later")).to_have_count(0)
    page.wait_for_timeout(500)
    assert len(visit.sent) == sent


def test_a_replay_ends_by_itself_and_leaves_no_trace(visit: Visit) -> None:
    page = opened(visit)
    chips(page).nth(3).click()
    at_length(page, 4)
    page.get_by_role("button", name="Replay the path").click()
    expect(page.locator(".player")).to_have_attribute("data-step", re.compile(r"\d"), timeout=PATIENCE)
    expect(page.locator(".player")).to_have_attribute("data-step", "", timeout=PATIENCE)
    expect(page.locator(".where")).to_have_text("4 steps")


def test_a_link_reopens_the_head_and_nonsense_in_it_is_the_mean(visit: Visit) -> None:
    page = opened(visit, attended="2.3")
    expect(page.locator(".heads")).to_have_value("2.3")
    page.get_by_role("button", name="Step").click()
    visit.settle()
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    box.fill("Another prompt")
    box.press("Control+Enter")
    visit.settle()
    expect(page.locator(".heads")).to_have_value("2.3")
    assert "attended=2.3" in page.url
    for nonsense in ("9.9", "<script>", "1", "-1.-1"):
        page = opened(visit, attended=nonsense)
        expect(page.locator(".heads")).to_have_value("")


def test_the_arrow_keys_walk_the_tree_and_a_number_takes_another_token(visit: Visit) -> None:
    page = opened(visit)
    table = rows(page)
    nodes = [row["node"] for row in path(table)]
    card = page.locator(".card")
    page.locator(".stage .chip.current").focus()
    page.keyboard.press("ArrowLeft")
    expect(card).to_have_attribute("data-node", nodes[-2])
    page.keyboard.press("ArrowRight")
    expect(card).to_have_attribute("data-node", nodes[-1])
    page.keyboard.press("ArrowRight")
    expect(card).to_have_attribute("data-node", "next")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".ghost").nth(1)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(card).to_have_attribute("data-node", nodes[-1])
    children: dict[str, list[str]] = {}
    for row in table:
        children.setdefault(row["parent"], []).append(row["node"])
    one, other = next(both for both in children.values() if len(both) == 2)
    page.locator(f".chip[data-node='{one}']").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f".chip[data-node='{other}']")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(f".chip[data-node='{one}']")).to_be_focused()
    page.keyboard.press("Home")
    expect(card).to_have_attribute("data-node", "0")
    page.keyboard.press("ArrowRight")
    expect(card).to_have_attribute("data-node", nodes[0])
    assert page.locator(".stage [tabindex='0']").count() == 1
    line = card.locator(".line:not(.taken)").first
    token = line.get_attribute("data-token")
    number = next(i for i, each in enumerate(card.locator(".line").all(), 1) if each.get_attribute("data-token") == token)
    page.keyboard.press(str(number))
    at_length(page, 1)
    assert tokens(rows(page)) == [int(token or "")]
    page.locator(f".chip[data-node='{nodes[4]}']").focus()
    page.keyboard.press("Enter")
    at_length(page, 5)
    assert tokens(rows(page)) == tokens(table)[:5]


def test_another_token_in_the_card_is_taken_in_the_place_of_the_one_looked_at(visit: Visit) -> None:
    page = opened(visit)
    before = rows(page)
    chips(page).nth(8).focus()
    line = page.locator(".card .line:not(.taken)").first
    token = int(line.get_attribute("data-token") or "")
    line.click()
    at_length(page, 9)
    assert tokens(rows(page)) == [*tokens(before)[:8], token]
    expect(page.locator(".card .how")).to_have_text(re.compile("^chosen by hand"))


def test_space_on_a_token_goes_there_and_does_not_step(visit: Visit) -> None:
    page = opened(visit)
    chips(page).nth(5).focus()
    page.keyboard.press("Space")
    at_length(page, 6)
    page.wait_for_timeout(500)
    assert length(page) == 6


# Where the view's parts stand, written down at every frame that the browser draws; a part that is gone has no place. While
# scripts follow each other closely, Streamlit itself may take a view away for a frame and put a new one there: it is left out.
WATCH = """() => {
    const shown = () => [...document.querySelectorAll('*')].find((one) => one.shadowRoot?.querySelector('.stage'))?.shadowRoot;
    const place = (part) => {
        const at = shown()?.querySelector(part)?.getBoundingClientRect();
        return at ? [at.x, at.y, at.width, at.height].map(Math.round).join(' ') : 'gone';
    };
    window.places = new Set();
    window.frames = 0;
    const look = () => {
        if (shown()) places.add(['.stage', '.run.grows', '.ghosts'].map(place).join(', '));
        frames++;
        requestAnimationFrame(look);
    };
    look();
}"""


@pytest.mark.alone
def test_while_it_plays_nothing_jumps(visit: Visit) -> None:
    page = opened(visit, speed="Fast")
    before = length(page)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".status")).not_to_have_text(re.compile(f"^{before:,} tokens"), timeout=PATIENCE)
    page.evaluate(WATCH)
    page.wait_for_timeout(2_500)
    places, frames = page.evaluate("[[...places], frames]")
    assert frames > 10
    assert len(places) == 1, places
    assert "gone" not in places[0]
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=PATIENCE)
    visit.settle()
    assert length(page) > before
    table = rows(page)
    assert len(tokens(table)) == length(page)
    assert all(row["how chosen"] for row in table)
    expect(page.locator(".card .line").first).to_be_visible()


def test_a_view_put_in_the_place_of_another_goes_on_with_its_tree(browser: Browser) -> None:
    tree = Tree(Generation(scrambled(tiny()), torch.tensor([1, 2, 3])))
    look = Look(7, ["a", "b", "c"], "t{}".format, repr)
    for _ in range(4):
        tree.step()
    first, last = generation_tree.whole(tree, look), tree.current
    tree.step()
    payloads = [base64.b64encode(one).decode() for one in (first, generation_tree.grown(tree, replace(look, playing=True), last))]
    page = browser.new_page()
    page.set_content("<body></body>")
    script = kit.script(kit.FOLDER.parent / "generation_tree").replace("export default view(", "window.mount = view(")
    page.add_script_tag(content=script, type="module")
    page.wait_for_function("typeof window.mount === 'function'")
    shown = page.evaluate(
        """(payloads) => {
            const sent = [];
            const place = () => {
                const parentElement = document.createElement('div');
                parentElement.append(Object.assign(document.createElement('div'), { className: 'root' }));
                document.body.append(parentElement);
                return parentElement;
            };
            const bytes = payloads.map((payload) => Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0)));
            const setTriggerValue = (name) => sent.push(name);
            const leave = mount({ data: bytes[0], parentElement: place(), setTriggerValue });
            leave();
            const parentElement = place();
            mount({ data: bytes[1], parentElement, setTriggerValue });
            return { sent, nodes: [...parentElement.querySelectorAll('[data-node]')].map((chip) => Number(chip.dataset.node)) };
        }""",
        payloads,
    )
    page.close()
    assert shown["sent"] == [], "it has nothing to ask for"
    assert {node.id for node in tree.path()} <= set(shown["nodes"])


def test_who_leaves_while_it_plays_and_comes_back_sees_the_whole_tree(visit: Visit) -> None:
    page = opened(visit, speed="Slow")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=PATIENCE)
    menu = page.get_by_test_id("stSidebar")
    menu.get_by_role("link", name="Positions", exact=True).click()
    expect(page).to_have_title("Positions · gptviz", timeout=PATIENCE)
    menu.get_by_role("link", name="Generate", exact=True).click()
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=PATIENCE)
    visit.settle()
    assert len(tokens(rows(page))) == length(page)
    assert any(row["on the current path"] == "no" for row in rows(page))


def test_the_code_shown_makes_the_tree_in_a_process_of_its_own(visit: Visit) -> None:
    page = opened(visit)
    page.locator(".ghost").first.click()
    visit.settle()
    table = rows(page)
    page.get_by_role("button", name="Code", exact=True).click()
    code = page.locator(".window pre").inner_text()
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    printed = [line.split(" ") for line in ended.stdout.splitlines()]
    for row, line in zip(path(table), printed, strict=True):
        assert (row["position"], row["token id"], row["token"]) == (line[0], line[1], line[2])
        assert float(line[3]) == pytest.approx(float(row["log-probability (nats)"]), abs=1e-6)
        assert float(line[4]) == pytest.approx(float(row["sum of the branch (nats)"]), abs=1e-6)


def test_the_picture_is_a_drawing_of_its_own(visit: Visit) -> None:
    page = opened(visit)
    drawing = ElementTree.parse(download(page, "SVG")).getroot()
    text = "".join(drawing.itertext())
    assert "ROMEO" in text
    assert "Σ" in text
    assert "var(" not in ElementTree.tostring(drawing, encoding="unicode")
    assert float(drawing.get("width") or "") > 300
    assert download(page, "PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.alone
def test_a_hundred_fast_interactions_leave_no_error_and_no_growing_memory(visit: Visit) -> None:
    page = opened(visit)
    seen = [chip.get_attribute("data-node") for chip in chips(page).all()[:25]]

    def interact() -> None:
        for i in range(100):
            node = seen[i % len(seen)]
            match i % 4:
                case 0:
                    page.locator(f".chip[data-node='{node}']").dispatch_event("pointerover", {"bubbles": True})
                case 1:
                    page.locator(".slider").fill(str(1 + i % 20))
                case 2:
                    page.locator(".heads").select_option(f"{i % 3}.{i % 4}")
                case _:
                    page.locator(f".chip[data-node='{node}']").focus()
                    page.keyboard.press("ArrowRight")
        page.locator(".slider").press("Escape")
        page.locator(".heads").select_option("")

    interact()
    before = visit.memory()
    interact()
    after = visit.memory()
    assert after["listeners"] <= before["listeners"] + 2
    assert after["nodes"] <= before["nodes"] * 1.05 + 50
    assert after["heap"] <= before["heap"] * 1.1 + 2**20


@pytest.mark.alone
def test_fast_clicks_back_and_forth_leave_no_growing_memory(visit: Visit) -> None:
    page = opened(visit)
    ends = [path(rows(page))[i]["node"] for i in (4, 9)]

    def interact() -> None:
        for i in range(20):
            page.locator(f".chip[data-node='{ends[i % 2]}']").click()
            at_length(page, (5, 10)[i % 2])

    interact()
    before = visit.memory()
    interact()
    after = visit.memory()
    assert after["listeners"] <= before["listeners"] + 2
    assert after["nodes"] <= before["nodes"] * 1.05 + 100
    assert after["heap"] <= before["heap"] * 1.15 + 4 * 2**20


@pytest.mark.parametrize("prompt", HOSTILE)
def test_a_hostile_prompt_stays_text(visit: Visit, prompt: str) -> None:
    page = opened(visit, prompt)
    assert page.title() != "pwned"
    assert page.locator("img[src=x]").count() == 0
    chips(page).first.hover()
    expect(page.locator(".card .line").first).to_be_visible()
    ElementTree.parse(download(page, "SVG"))


@pytest.fixture(scope="module")
def hostile_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model whose tokens are markup, invisible, and of the other direction of writing."""
    folder = tmp_path_factory.mktemp("hostile")
    characters = "<>\"'&/=ximgonerrw*`$[]():\u202e\u200b\u05d0\u0301\u2028\ufeff\ud83e"
    tokenizer = CharTokenizer("".join(dict.fromkeys(characters)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTVIZ_HOME", str(folder / "home"))
        checkpoints.save("hostile", scrambled(tiny(vocab_size=tokenizer.vocab_size)), tokenizer, {})
    with serve(folder) as running:
        yield running


def test_hostile_tokens_stay_text(browser: Browser, hostile_server: Server) -> None:
    with visiting(browser, hostile_server) as visit:
        page = opened(visit, "<img src=x onerror=>", "hostile")
        for place in range(0, 40, 8):
            chips(page).nth(place).hover()
        assert page.locator(".root img, .root script").count() == 0
        ElementTree.parse(download(page, "SVG"))
        table = rows(page)
        labels = {row["token"] for row in table}
        assert "U+202E" in labels or "U+200B" in labels
        page.get_by_role("button", name="Code", exact=True).click()
        expect(page.locator(".window pre")).to_contain_text("hostile")
        order = [chip.inner_text() for chip in chips(page).all()]
        assert order == [row["token"] for row in path(table)]
        lefts = page.evaluate("""() => {
            const root = [...document.querySelectorAll('*')].find((one) => one.shadowRoot?.querySelector('.stage')).shadowRoot;
            const boxes = [...root.querySelectorAll('.run.strong button.chip')].map((one) => one.getBoundingClientRect());
            return boxes.map((box) => [box.top, box.left]);
        }""")
        for (top, left), (next_top, next_left) in itertools.pairwise(lefts):
            assert next_left > left or next_top > top + 2 or next_left - left > 100, "left to right, whatever the script"


def test_two_browsers_do_not_share_a_tree(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as one, visiting(browser, server) as two:
        first, second = opened(one), opened(two)
        before = rows(second)
        first.locator(".ghost").nth(1).click()
        at_length(first, len(tokens(before)) + 1)
        second.get_by_role("button", name="Undo").click()
        at_length(second, len(tokens(before)) - 1)
        assert len(rows(first)) == len(before) + 1
        assert len(rows(second)) == len(before)
        assert tokens(rows(first))[:-1] == tokens(before)


def test_a_reload_begins_the_same_text_anew(visit: Visit) -> None:
    page = opened(visit)
    before = tokens(rows(page))
    page.locator(".ghost").nth(1).click()
    at_length(page, len(before) + 1)
    page.reload()
    visit.settle()
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    again = tokens(rows(page))
    short = min(len(again), len(before))  # a slow machine opens with fewer tokens
    assert again[:short] == before[:short]


def test_on_a_touch_screen_the_first_tap_looks_and_the_second_goes(browser: Browser, server: Server) -> None:
    check_on_a_phone(browser, server, "generate", model=MODEL)
    with visiting(browser, server, width=390, height=844) as visit:
        page = opened(visit)
        before = length(page)
        chip = chips(page).nth(6)

        def tap() -> None:
            for kind in ("pointerover", "pointerdown", "pointerup", "pointerleave"):
                chip.dispatch_event(kind, {"pointerType": "touch", "bubbles": True})
            chip.dispatch_event("click")

        tap()
        expect(page.locator(".card .nth")).to_have_text("token 7")
        assert length(page) == before
        tap()
        at_length(page, 7)


def test_it_is_right_in_the_dark_too(browser: Browser, server: Server) -> None:
    with visiting(browser, server, dark=True) as visit:
        page = opened(visit)
        chip = chips(page).nth(3)
        colours = chip.evaluate("one => [getComputedStyle(one).color, getComputedStyle(one.closest('.run')).backgroundColor]")
        light, dark = (sum(map(float, re.findall(r"[\d.]+", colour)[:3])) for colour in colours)
        assert light > dark + 300
        assert math.isfinite(light)


def test_the_logits_after_coming_back_are_those_of_a_fresh_pass(visit: Visit) -> None:
    page = opened(visit)
    chips(page).nth(20).click()
    at_length(page, 21)
    tree = grown(rows(page))
    p = torch.softmax(tree.after().logits.double(), -1)
    shown = [int(ghost.get_attribute("data-token") or "") for ghost in page.locator(".ghost").all()]
    following = {int(row["token id"]) for row in rows(page) if row["parent"] == path(rows(page))[-1]["node"]}
    assert shown == [token for token in p.topk(8).indices.tolist() if token not in following][: len(shown)]
    assert len(shown) == 5


def clicks(page: Page, *labels: str) -> None:
    """Click buttons of the page one right after the other, before anything can answer."""
    page.evaluate(
        """labels => {
            const lines = (one) => one.innerText.split("\\n").map((line) => line.trim());
            const named = (label) => [...document.querySelectorAll("button")].find((one) => lines(one).includes(label));
            labels.forEach((label) => named(label)?.click());
        }""",
        list(labels),
    )


def test_a_step_and_play_in_one_moment_lose_no_token(visit: Visit) -> None:
    page = opened(visit, speed="Fast")
    at = length(page)
    for _ in range(3):
        clicks(page, "Step", "Play")
        expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".status")).not_to_have_text(re.compile(f"^{at:,} tokens"), timeout=PATIENCE)
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=PATIENCE)
        visit.settle()
        at = length(page)
        expect(chips(page)).to_have_count(at)
        assert len(tokens(rows(page))) == at


def test_attention_that_is_no_longer_kept_is_computed_again_when_asked_for(visit: Visit) -> None:
    model, prompt = "shakespeare", "Now is the winter of our discontent " * 7  # as long as the context: each step takes most room
    page = opened(visit, prompt, model, speed="Fast")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".status")).to_have_text(re.compile("^(2[4-9][0-9]|[3-9][0-9]{2}) tokens"), timeout=4 * PATIENCE)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=PATIENCE)
    visit.settle()
    chips(page).first.hover()
    again = page.get_by_role("button", name="Compute it again")
    again.click()
    expect(page.locator(".stage .chip.current")).to_be_visible()
    chips(page).first.hover()
    expect(page.locator(".attended .item")).to_have_count(6, timeout=PATIENCE)
    computed = Tree(gptviz.load(model).generation(prompt)).after()
    weights = computed.attention.double().mean((0, 1))
    for item in page.locator(".attended .item").all():
        key = int(item.get_attribute("data-place") or "") - computed.start
        assert float(item.get_attribute("data-weight") or "") == pytest.approx(float(weights[key]), rel=2e-3, abs=1e-6)


# Whether each of these parts lies within the stage, and the height of its middle.
SEEN = """parts => {
    const root = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage")).shadowRoot;
    const stage = root.querySelector(".stage").getBoundingClientRect();
    return [...root.querySelectorAll(parts)].map((one) => {
        const box = one.getBoundingClientRect();
        const within = box.top >= stage.top && box.bottom <= stage.bottom && box.left >= stage.left && box.right <= stage.right;
        return [within, (box.top + box.bottom) / 2, box.height];
    });
}"""


def test_the_current_place_and_what_may_come_next_are_seen_however_many_branches_there_are(visit: Visit) -> None:
    page = opened(visit)
    for act in ("A fork", "A fork", "A fork", "Restart"):
        visit.settle()
        page.get_by_role("button", name=act).click()
        visit.settle()
        page.wait_for_timeout(300)
        assert all(within for within, _, _ in page.evaluate(SEEN, ".ghost, .chip.current"))


def test_the_current_path_is_a_straight_line_where_there_is_room(visit: Visit) -> None:
    page = opened(visit, "ROMEO:")
    (_, first, _), (_, last, _) = page.evaluate(SEEN, ".run.strong")
    (_, ghosts, _) = page.evaluate(SEEN, ".ghosts")[0]
    assert abs(last - ghosts) <= 2
    assert abs(first - last) <= 40
    (foot,) = page.evaluate(SEEN, ".run:not(.strong) .foot")
    assert foot[0], "the other branch is seen whole"


def test_a_branch_just_begun_is_low_and_one_that_goes_on_high(visit: Visit) -> None:
    page = opened(visit)
    before = length(page)
    page.get_by_role("button", name="Undo").click()
    at_length(page, before - 1)
    page.locator(".ghost").last.click()
    at_length(page, before)
    low = page.evaluate(SEEN, ".run.grows")[0][2]
    for after in range(before + 1, before + 41):
        page.get_by_role("button", name="Step").click()
        at_length(page, after)
    assert page.evaluate(SEEN, ".run.grows")[0][2] > 2 * low - 1
    assert page.evaluate(SEEN, ".run.grows .chip.current")[0][0]


def test_the_end_of_the_text_stays_in_view_when_it_is_paused(visit: Visit) -> None:
    page = opened(visit, speed="Fast")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".status")).to_have_text(re.compile("^[2-9][0-9]{2} tokens"), timeout=PATIENCE)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=PATIENCE)
    visit.settle()
    bottoms = """() => {
        const root = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage")).shadowRoot;
        return [".chip.current", ".grows .text"].map((part) => root.querySelector(part).getBoundingClientRect().bottom);
    }"""
    chip, text = page.evaluate(bottoms)
    assert chip <= text + 1


def test_a_percentage_is_never_broken(visit: Visit) -> None:
    page = opened(visit, model="bpe")
    assert len({round(height) for _, _, height in page.evaluate(SEEN, ".ghost")}) == 1
