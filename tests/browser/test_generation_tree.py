"""The generation tree in a browser: what its cards say, what a click asks for, and how the page
answers.

What leads from a payload to the screen is tested on a page of its own (`mounted`), what takes the
server on the app (`visit`).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import gptviz
from gptviz.components import generation_tree
from gptviz.components.generation_tree import finished
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Ghost, Look
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT, Tree
from gptviz.interp.reading.next_token import predict
from gptviz.language_model import LanguageModel
from gptviz.text import CharTokenizer
from tests.browser.contrast import faint
from tests.browser.files import code, csv_rows
from tests.browser.keyboard import FOCUSED, check_tools, press, tab_to
from tests.browser.machinery import Visit
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

# Small and soon past its context of 64 tokens.
MODEL = "generator"
PROMPT = "ROMEO:\nO, she doth teach"
PATIENCE = 60_000
ALTERNATIVES = 8
Row = dict[str, str]
Mount = Callable[..., Mounted]


# On a page of its own


@cache
def opened_model(name: str) -> LanguageModel:
    return gptviz.load(name)


def written(
    lm: LanguageModel, prompt: str = PROMPT, tokens: int = 100, forked: bool = True
) -> Tree:
    """A text of so many tokens, and a branch of 20 beside it."""
    tree = Tree(lm.generation(prompt), n_candidates=ALTERNATIVES)
    for _ in range(tokens):
        tree.step()
    if forked:
        fork(tree, tokens // 3)
    return tree


def fork(tree: Tree, place: int, tokens: int = 20) -> None:
    """Write another token in this place of the path, and so many in all."""
    end = tree.current
    node = tree.path()[place]
    assert node.parent is not None
    tree.go(node.parent)
    tree.take(
        next(
            one.token
            for one in node.candidates
            if one.token not in tree.nodes[node.parent].children
        )
    )
    for _ in range(tokens - 1):
        tree.step()
    tree.go(end)


@dataclass
class Shown:
    """A view with the tree that it shows: this test takes the place of the server."""

    view: Mounted
    tree: Tree
    lm: LanguageModel

    @property
    def page(self) -> Page:
        return self.view.page

    def look(self, **changes: Any) -> Look:
        return looked(self.tree, self.lm, **changes)

    def show(self, asked: int | None = None, **changes: Any) -> None:
        """Show all of the tree as it is now."""
        self.view.show(payload(self.tree, self.look(**changes), asked))

    def answer(self) -> None:
        """Do what the view asked for last, as the page does."""
        _, name, fields = self.view.sent[-1]
        if name == "take":
            chosen = generation_tree.read_step(fields, self.tree, 1)
            assert chosen is not None
            self.tree.go(chosen[0])
            self.tree.take(chosen[1])
            return self.show()
        at = generation_tree.place(fields, self.tree, 1)
        assert at is not None
        if name == "attend":
            return self.show(asked=at)
        assert name == "go"
        self.tree.go(at)
        return self.show()


def payload(tree: Tree, look: Look, asked: int | None = None) -> bytes:
    """What a view gets of a tree, its parts inside."""
    return generation_tree.pack_tree(tree, look, Finished(), asked).joined_bytes


def looked(tree: Tree, lm: LanguageModel, **changes: Any) -> Look:
    prediction = predict(tree.compute_after().logits, tree.generation.sampling)
    top = prediction.before.argsort(kind="stable")[::-1][:ALTERNATIVES].tolist()
    ghosts = [
        Ghost(i, float(prediction.before[i]), float(prediction.after[i]), str(prediction.cut[i]))
        for i in top
    ]
    length = len(tree.path())
    usual = {
        "number": 1,
        "prompt": [lm.tokenizer.label(i) for i in tree.prompt],
        "label": lm.tokenizer.label,
    }
    usual |= {
        "described": lambda sampling: f"temperature {sampling.temperature:g}",
        "ghosts": ghosts,
        "code": "print()",
    }
    return Look(**usual | {"status": f"{length:,} token{'' if length == 1 else 's'}"} | changes)


@pytest.fixture
def shown(mounted: Mount) -> Callable[..., Shown]:
    """Shows a tree: `shown(tree=…, lm=…, **look and address)`."""

    def show(
        tree: Tree | None = None,
        lm: LanguageModel | None = None,
        *,
        look: dict[str, Any] | None = None,
        **page: Any,
    ) -> Shown:
        lm = lm or opened_model(MODEL)
        tree = tree or written(lm)
        return Shown(
            mounted("generation_tree", payload(tree, looked(tree, lm, **look or {})), **page),
            tree,
            lm,
        )

    return show


def path(table: list[Row]) -> list[Row]:
    return sorted(
        (row for row in table if row["on the current path"] == "yes"),
        key=lambda row: int(row["position"]),
    )


def tokens(table: list[Row]) -> list[int]:
    return [int(row["token id"]) for row in path(table)]


def chips(page: Page) -> Locator:
    """The chips of the current path after the prompt, in their order."""
    return page.locator(".run.strong button.chip:not(.prompt)")


def node_of(page: Page, node: int) -> Locator:
    return page.locator(f"button.chip[data-node='{node}']")


def at_length(page: Page, length: int) -> None:
    """Wait until the text has so many tokens."""
    expect(page.locator(".status")).to_have_text(
        re.compile(rf"^{length:,} tokens?\b"), timeout=PATIENCE
    )


def length(page: Page) -> int:
    """How many tokens the text has; a line that is being written anew is waited for."""
    line = (
        page.locator(".status")
        .filter(has_text=re.compile(r"^[\d,]+ tokens?\b"))
        .text_content(timeout=PATIENCE)
    )
    return int((line or "").split(" ")[0].replace(",", ""))


@pytest.mark.parametrize("model", ["generator", "ladder-0"])
def test_what_a_card_says_equals_the_tensors(shown: Callable[..., Shown], model: str) -> None:
    lm = opened_model(model)
    tree = written(lm)
    page = shown(tree, lm).page
    places = [0, 7, 99]  # the last one's context has slid
    for head, place in itertools.product(("", "1.2") if lm.model.config.n_layer else ("",), places):
        if lm.model.config.n_layer:
            page.locator(".heads").select_option(head)
        chips(page).nth(place).hover()
        node = tree.path()[place]
        computed = tree.chosen_from(node.id)
        p = computed.logits.double().softmax(-1)
        card = page.locator(".card")
        expect(card).to_have_attribute("data-node", str(node.id))
        lines = card.locator(".line").evaluate_all(
            "lines => lines.map(({ dataset }) => [dataset.token, dataset.p])"
        )
        listed = {int(token): float(probability) for token, probability in lines}
        likely = p.topk(ALTERNATIVES).indices.tolist()
        assert list(listed)[:ALTERNATIVES] == likely
        assert set(listed) == {*likely, node.token}
        for token, probability in listed.items():
            assert probability == pytest.approx(float(p[token]), rel=1e-6)
        expect(card.locator(".line.taken")).to_have_attribute("data-token", str(node.token))
        expect(card.locator(".p")).to_have_text(
            re.compile(re.escape(f"{100 * float(p[node.token]):.3g}"[:3]))
        )
        if not lm.model.config.n_layer:
            expect(card.locator(".attended")).to_have_text("This model has no attention.")
            expect(
                page.get_by_text("Attended to:").or_(page.get_by_text("attention (log scale)"))
            ).to_have_count(2)
            expect(page.get_by_text("Attended to:")).to_be_hidden()
            expect(page.get_by_text("attention (log scale)")).to_be_hidden()
            continue
        attention = computed.attention.double()
        weights = attention.mean((0, 1)) if not head else attention[1, 2]
        items = attended(page)
        assert len(items) == 6
        for key, weight in items.items():
            assert weight == pytest.approx(float(weights[key - computed.start]), rel=2e-3, abs=1e-6)
        assert sum(items.values()) == pytest.approx(float(weights.topk(6).values.sum()), rel=1e-2)
        tinted = page.locator(".stage .chip.key").count()
        assert tinted == pytest.approx(int((weights >= 0.001).sum()), abs=3)


def attended(page: Page) -> dict[int, float]:
    """The places that the card lists, with their weights."""
    items = page.locator(".attended .item").evaluate_all(
        "items => items.map(({ dataset }) => [dataset.place, dataset.weight])"
    )
    return {int(place): float(weight) for place, weight in items}


def test_log_probabilities_and_their_sums_are_those_of_the_library(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    table = csv_rows(view.page)
    assert len(table) == len(view.tree.nodes) - 1
    for row in table:
        node = view.tree.nodes[int(row["node"])]
        assert (int(row["token id"]), int(row["position"]), row["parent"]) == (
            node.token,
            node.position,
            str(node.parent),
        )
        assert float(row["log-probability (nats)"]) == node.logprob
        assert float(row["log-probability in the draw (nats)"]) == node.draw_logprob
        assert float(row["sum of the branch (nats)"]) == node.total
    assert [int(row["node"]) for row in path(table)] == [node.id for node in view.tree.path()]
    foot = view.page.locator(".run.grows .foot")
    total = view.tree.nodes[view.tree.current].total
    length = len(view.tree.path())
    assert float(foot.get_attribute("data-total") or "") == total
    said = foot.locator(".mean").inner_text().removesuffix(" per token").replace("−", "-")
    assert float(said) == pytest.approx(total / length, rel=0.005)
    assert view.page.locator(".foot:visible").count() == 2, "a second branch has its own"


def test_hovering_replaying_and_choosing_a_head_ask_nothing_of_the_server(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    page = view.page
    for place in (0, 5, 11, 3):
        chips(page).nth(place).hover()
        expect(chips(page).nth(place)).to_have_class(re.compile("focus"))
    page.locator(".heads").select_option("2.1")
    expect(page).to_have_url(re.compile(r"attended=2\.1"))
    page.mouse.move(2, 700)
    steps = page.locator(".player")
    page.get_by_role("button", name="Replay the path").click()
    expect(steps).to_have_attribute("data-step", re.compile(r"\d"))
    expect(page.locator(".chip.later").first).to_be_attached()
    page.get_by_role("button", name="Replay the path").click()
    page.locator(".slider").fill("8")
    expect(steps).to_have_attribute("data-step", "7")
    page.get_by_role("button", name="Replay: a token back").click()
    page.get_by_role("button", name="Replay: a token back").click()
    expect(steps).to_have_attribute("data-step", "5")
    expect(page.locator(".card .nth")).to_have_text("token 6")
    page.get_by_role("button", name="Replay: a token forward").click()
    expect(steps).to_have_attribute("data-step", "6")
    page.locator(".slider").press("Escape")
    expect(steps).to_have_attribute("data-step", "")
    expect(page.locator(".chip.later")).to_have_count(0)
    assert view.view.sent == []


def test_a_replay_ends_by_itself_and_leaves_no_trace(shown: Callable[..., Shown]) -> None:
    page = shown(written(opened_model(MODEL), tokens=4, forked=False)).page
    page.get_by_role("button", name="Replay the path").click()
    expect(page.locator(".player")).to_have_attribute("data-step", re.compile(r"\d"))
    expect(page.locator(".player")).to_have_attribute("data-step", "", timeout=PATIENCE)
    expect(page.locator(".chip.later")).to_have_count(0)
    expect(page.locator(".where")).to_have_text("4 steps")


def test_the_arrow_keys_walk_the_tree_and_a_number_takes_another_token(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    page = view.page
    tree = view.tree
    nodes = [node.id for node in tree.path()]
    card = page.locator(".card")
    page.locator(".stage .chip.current").focus()
    # tests/js has where else keys lead
    for key, node in (("ArrowRight", "next"), ("Home", ROOT), ("ArrowRight", nodes[0])):
        page.keyboard.press(key)
        expect(card).to_have_attribute("data-node", str(node))
    lines = card.locator(".line").evaluate_all(
        "lines => lines.map(({ dataset }) => Number(dataset.token))"
    )
    number, token = next(
        (i, token) for i, token in enumerate(lines, 1) if token != tree.nodes[nodes[0]].token
    )
    assert card.locator(".line").nth(number - 1).get_attribute("aria-keyshortcuts") == str(number)
    page.keyboard.press(str(number))
    view.answer()
    at_length(page, 1)
    assert [node.token for node in tree.path()] == [token]
    node_of(page, nodes[4]).focus()
    page.keyboard.press("Enter")
    view.answer()
    at_length(page, 5)
    assert [node.id for node in tree.path()] == nodes[:5]


def test_the_tab_key_leads_to_the_tokens_of_the_card_and_the_arrow_keys_through_them(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    page = view.page
    node = view.tree.path()[8]
    node_of(page, node.id).focus()
    page.keyboard.press("Tab")
    lines = page.locator(".card .line")
    expect(lines.first).to_be_focused()
    expect(page.locator(".card")).to_have_attribute("data-node", str(node.id))
    page.keyboard.press("ArrowUp")
    expect(lines.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(lines.nth(2)).to_be_focused()
    page.keyboard.press("End")
    expect(lines.last).to_be_focused()
    assert page.locator(".card .line[tabindex='0']").count() == 1
    page.keyboard.press("Escape")
    expect(node_of(page, node.id)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    place = next(i for i, one in enumerate(node.candidates) if one.token != node.token)
    for _ in range(place):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    view.answer()
    at_length(page, 9)
    assert view.tree.path()[-1].token == node.candidates[place].token
    expect(page.locator(".stage .chip.current")).to_be_focused()
    expect(page.locator(".card .how")).to_have_text(re.compile("^chosen by hand"))


def test_by_the_keyboard_alone_tokens_are_looked_at_and_taken_heads_chosen_and_the_path_replayed(
    shown: Callable[..., Shown],
) -> None:
    lm = opened_model(MODEL)
    tree = Tree(lm.generation(PROMPT), n_candidates=ALTERNATIVES)
    for _ in range(6):
        tree.step()
    fork(tree, 2, tokens=4)
    view = shown(tree, lm)
    page = view.page
    tab_to(page, f'"node":"{tree.current}"')
    # From the stop of the Tab key the arrow keys lead to everything on the stage.
    start = page.evaluate(FOCUSED)
    reached = {start}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.locator(f".stage button{selector(here)}").focus()
            if (at := press(page, key)) not in reached:
                reached.add(at)
                waiting.append(at)
    assert len(reached) == page.locator(".stage button").count() == 1 + 6 + 4 + ALTERNATIVES
    # Back, and in the card to another head, and what it attended to.
    press(page, "End")
    press(page, "ArrowLeft")
    press(page, "Space")
    view.answer()
    at_length(page, 5)
    tab_to(page, "select Attention of")
    press(page, "ArrowDown")
    expect(page.locator(".heads")).to_have_value("0.0")
    tab_to(page, " at ")
    first = page.locator(".attended .item").first
    expect(first).to_be_focused()
    place = int(first.get_attribute("data-place") or "")
    labels = [lm.tokenizer.label(i) for i in (*tree.prompt, *(node.token for node in tree.path()))]
    expect(page.locator(".chip.pointed")).to_have_text(labels[place])
    view.show()
    expect(first).to_be_focused()
    press(page, "End")
    expect(page.locator(".attended .item").last).to_be_focused()
    expect(page.locator(".chip.pointed")).to_have_count(1)
    press(page, "Escape")
    expect(page.locator(".stage .chip.current")).to_be_focused()
    expect(page.locator(".chip.pointed")).to_have_count(0)
    # The replay.
    tab_to(page, "button Replay the path")
    tab_to(page, "input Replay: token")
    press(page, "End")
    press(page, "ArrowLeft")
    expect(page.locator(".player")).to_have_attribute("data-step", str(len(tree.path()) - 2))
    press(page, "Escape")
    check_tools(page)


def selector(focused: str) -> str:
    """What finds the element of the stage that `FOCUSED` of tests/browser/keyboard.py has named
    so.
    """
    ((name, value),) = json.loads(focused[focused.rindex("{") :]).items()
    return f"[data-{name}='{value}']"


def test_a_level_is_the_number_of_forks_before_a_token(shown: Callable[..., Shown]) -> None:
    view = shown()
    tree = view.tree
    one, other = next(
        list(node.children.values()) for node in tree.nodes.values() if len(node.children) == 2
    )

    def levels() -> list[str | None]:
        parts = [
            node_of(view.page, ROOT),
            node_of(view.page, one),
            node_of(view.page, other),
            view.page.locator(".ghost").first,
        ]
        return [part.get_attribute("aria-level") for part in parts]

    assert levels() == ["1", "2", "2", "3"]
    fork(tree, 5)
    view.show()
    assert levels() == ["1", "3", "3", "4"]
    assert node_of(view.page, tree.path()[-1].id).get_attribute("aria-level") == "3"


def test_a_tree_in_parts_is_shown_once_all_of_them_are_here(
    mounted: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "PART_NODES", 4)
    tree = Tree(Generation(scrambled(tiny()), torch.tensor([1, 2, 3])))
    parts = Finished()
    look = Look(7, ["a", "b", "c"], "t{}".format, repr)
    for _ in range(9):
        tree.step()
    view = mounted("generation_tree", generation_tree.pack_tree(tree, look, parts).joined_bytes)
    tree.step()
    before = generation_tree.pack_tree(tree, look, parts)
    for _ in range(5):
        tree.step()
    after = generation_tree.pack_tree(tree, look, parts)
    assert set(before.parts) < set(after.parts)

    def current() -> str | None:
        return view.page.locator("button.chip.current").get_attribute("data-node")

    view.show(before.data)
    assert current() == "9", "the parts of this payload are not here yet"
    view.show(after.data)
    view.keep(before.parts)
    assert current() == "9", "a payload that another one has followed is not shown any more"
    view.keep(after.parts)
    expect(view.page.locator("button.chip.current")).to_have_attribute(
        "data-node", str(tree.current)
    )
    assert [int(row["node"]) for row in csv_rows(view.page)] == [
        node for node in tree.nodes if node != ROOT
    ]
    view.replace()
    view.show(after.data)
    expect(view.page.locator("button.chip.current")).to_have_attribute(
        "data-node", str(tree.current)
    )


def scrolled(page: Page) -> list[list[float]]:
    """How far the stage and the boxes on it are scrolled, and where the boxes are."""
    return page.locator(".stage, .run, .text").evaluate_all(
        """all => all.map((one) => {
            const { x, y, width, height } = one.getBoundingClientRect();
            return [one.scrollLeft, one.scrollTop, x, y, width, height];
        })"""
    )


def test_the_picture_has_all_of_the_text_and_says_of_what(shown: Callable[..., Shown]) -> None:
    lm = opened_model(MODEL)
    tree = written(lm, tokens=400)  # more than its box shows at a time
    fork(tree, 380)
    heading = {
        "model": "generator, step 7",
        "prompt": PROMPT,
        "settings": ["drawn with temperature 1, seed 0"],
    }
    page = shown(tree, look={"heading": heading}).page
    page.locator(".stage").evaluate("stage => { stage.scrollLeft = 40 }")
    before = scrolled(page)
    drawn = saved(page)
    assert scrolled(page) == before, "what was scrolled stays where it was"
    assert faults(page, drawn) == []
    said = words(drawn)
    assert said[0] == "What the model wrote, as a tree"
    assert "Model: generator, step 7 · drawn with temperature 1, seed 0" in said
    prompt = " ".join(PROMPT.split())
    assert any(line.startswith("Prompt:") and prompt in " ".join(line.split()) for line in said)
    labels = [
        lm.tokenizer.label(one.token) for one in tree.nodes.values() if one.parent is not None
    ]
    missing = Counter(labels) - Counter(said)
    assert not missing, "every token of every branch is drawn"


def test_a_step_and_an_undo_leave_what_may_come_next_under_the_pointer(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    rows_at = []
    shift = view.tree
    read = "all => all.map((one) => JSON.stringify(one.getBoundingClientRect()))"
    for act in ("", *2 * ["go_back"], "step", *3 * ["go_back"], "take", "step", *2 * ["go_back"]):
        if act == "take":
            shift.take(
                next(one for one in range(40) if one not in shift.nodes[shift.current].children)
            )
        elif act:
            getattr(shift, act)()
        view.show()
        rows_at.append(tuple(view.page.locator(".ghost").evaluate_all(read)))
    assert len(rows_at[0]) == ALTERNATIVES
    assert len(set(rows_at)) == 1, "as many lines, each in its place"


def test_a_token_that_a_branch_goes_on_with_is_marked_among_what_may_come_next(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    left = view.tree.nodes[view.tree.go_back().id]
    view.show()
    (taken,) = left.children
    marked = view.page.locator(".ghost.taken")
    listed = [int(one.get_attribute("data-token") or "") for one in marked.all()]
    assert listed == [taken]
    marked.click()
    view.answer()
    assert view.tree.current == left.children[taken]


def test_every_box_of_the_path_shows_the_beginning_of_its_text_and_the_last_one_its_end(
    shown: Callable[..., Shown],
) -> None:
    lm = opened_model(MODEL)
    tree = written(lm, tokens=900, forked=False)
    fork(tree, 600)
    page = shown(tree).page
    tops = page.locator(".run.strong .text").evaluate_all(
        "texts => texts.map((one) => one.scrollTop)"
    )
    assert len(tops) == 2
    assert tops[0] == 0 < tops[1]
    wide = page.locator(".run.strong").evaluate_all("boxes => boxes.map((one) => one.offsetWidth)")
    assert min(wide) >= 200


def test_the_card_says_where_what_is_attended_to_stands_and_the_text_marks_it(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    page = view.page
    places = list(attended(page))
    assert page.locator(".attended .place").all_inner_texts() == [f"at {place}" for place in places]
    ids = view.tree.ids()
    label = view.lm.tokenizer.label
    assert page.locator(".attended .chip").all_inner_texts() == [
        label(ids[place]) for place in places
    ]
    marked = page.locator(".stage .chip.listed").evaluate_all(
        "chips => chips.map(({ dataset }) => Number(dataset.node))"
    )
    nodes = {node.position: node.id for node in view.tree.path()}
    assert sorted(marked) == sorted(nodes[place] for place in places)
    page.locator(".attended .item").nth(2).hover()
    expect(page.locator(".stage .chip.pointed")).to_have_attribute(
        "data-node", str(nodes[places[2]])
    )
    chips(page).nth(40).hover()
    expect(page.locator(".stage .chip.pointed")).to_have_count(0)


def test_the_view_writes_into_the_address_what_it_is_given(shown: Callable[..., Shown]) -> None:
    view = shown(look={"address": {"route": "n5_123456", "tree": "key"}}, seed=3)
    expect(view.page).to_have_url(re.compile(r"seed=3&route=n5_123456&tree=key$"))
    # as the server writes it, which knows an old one
    view.page.evaluate("history.pushState({}, '', '?seed=4&route=old')")
    expect(view.page).to_have_url(re.compile(r"seed=4&route=n5_123456&tree=key$"))
    view.show(address={"route": None, "tree": None})
    expect(view.page).to_have_url(re.compile(r"\?seed=4$"))
    view.page.evaluate("history.pushState({}, '', '?seed=5&route=old')")
    expect(view.page).to_have_url(re.compile(r"\?seed=5$"))


def test_tokens_of_any_script_stay_in_their_order(shown: Callable[..., Shown]) -> None:
    characters = "<>\"'&/=ximgonerrw*`$[]():\u202e\u200b\u05d0\u0301\u2028\ufeff\ud83e"
    tokenizer = CharTokenizer("".join(dict.fromkeys(characters)))
    lm = LanguageModel("any", scrambled(tiny(vocab_size=tokenizer.vocab_size)), tokenizer, {})
    view = shown(written(lm, "<img src=x onerror=>", tokens=40), lm)
    page = view.page
    table = csv_rows(page)
    assert {row["token"] for row in table} & {"U+202E", "U+200B"}
    expected = [tokenizer.label(node.token) for node in view.tree.path()]
    # A cell that a spreadsheet would take for a formula has an apostrophe before it.
    assert [row["token"].removeprefix("'") or "'" for row in path(table)] == expected
    assert [chip.inner_text() for chip in chips(page).all()] == expected
    places = chips(page).evaluate_all(
        "chips => chips.map((chip) => chip.getBoundingClientRect()).map((box) => [box.top, "
        "box.left])"
    )
    for (top, left), (next_top, next_left) in itertools.pairwise(places):
        assert next_left > left or next_top > top + 2 or next_left - left > 100, (
            "left to right, whatever the script"
        )


def test_on_a_touch_screen_the_first_tap_looks_and_the_second_goes(
    shown: Callable[..., Shown],
) -> None:
    view = shown(width=390, height=844)
    chip = chips(view.page).nth(6)

    def tap() -> None:
        for kind in ("pointerover", "pointerdown", "pointerup", "pointerleave"):
            chip.dispatch_event(kind, {"pointerType": "touch", "bubbles": True})
        chip.dispatch_event("click")

    tap()
    expect(view.page.locator(".card .nth")).to_have_text("token 7")
    assert view.view.sent == []
    tap()
    view.answer()
    at_length(view.page, 7)
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("label", ["␣", "⏎", None])
def test_tokens_can_be_read_on_every_tint(
    shown: Callable[..., Shown], dark: bool, label: str | None
) -> None:
    lm = opened_model(MODEL)
    tree = written(lm)
    tree.generation.sampling = Sampling(top_k=2)  # cuts what may come next
    tree.step()
    blank = {} if label is None else {"label": lambda _: label, "prompt": [label] * 9}
    page = shown(tree, lm, look=blank, dark=dark).page
    assert page.locator(".ghost.cut").count()
    strongest = page.locator(".stage .chip").evaluate_all(
        "chips => Math.max(...chips.map((chip) => "
        "parseFloat(chip.style.getPropertyValue('--tint') || '0')))"
    )
    assert strongest > 52, "of 54, the strongest tint there is"
    assert faint(page) == []
    for place in (1, 60, 90):
        chips(page).nth(place).hover()
        assert page.locator(".chip.key").count()
        assert faint(page) == []
    page.locator(".attended .item").first.hover()
    assert faint(page) == []
    page.locator(".ghost").first.hover()
    assert page.locator(".line.cut").count()
    assert faint(page) == []


def test_bars_and_tints_keep_their_colours_where_the_system_chooses_colours(
    shown: Callable[..., Shown],
) -> None:
    page = shown().page
    chips(page).nth(30).hover()
    parts = page.locator(".card .fill, .stage .chip.key, .stage .chip.current")
    colours = (
        "all => all.map((one) => getComputedStyle(one)).map((look) => `${look.color} on "
        "${look.backgroundColor}`)"
    )
    before = parts.evaluate_all(colours)
    page.emulate_media(forced_colors="active")
    assert parts.evaluate_all(colours) == before


def test_attention_that_did_not_travel_is_asked_for(
    shown: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "MOST_BYTES", 20_000)
    view = shown()
    page = view.page
    expect(page.locator(".attended .item")).to_have_count(6)
    chips(page).first.hover()
    page.get_by_role("button", name="Compute it again").click()
    assert view.view.sent[-1][1:] == ("attend", {"number": 1, "at": ROOT})
    view.answer()
    chips(page).first.hover()
    expect(page.locator(".attended .item")).to_have_count(6)
    computed = Tree(view.lm.generation(PROMPT)).compute_after()
    weights = computed.attention.double().mean((0, 1))
    for key, weight in attended(page).items():
        assert weight == pytest.approx(float(weights[key - computed.start]), rel=2e-3, abs=1e-6)


# Whether each of these parts lies within the stage, the height of its middle, and its own height.
SEEN = """(all) => {
    const stage = all[0].closest(".stage").getBoundingClientRect();
    return all.map((one) => {
        const box = one.getBoundingClientRect();
        const within = box.top >= stage.top && box.bottom <= stage.bottom && box.left >= stage.left && box.right <= stage.right;
        return [within, (box.top + box.bottom) / 2, box.height];
    });
}"""


def test_the_current_place_and_what_may_come_next_are_seen_however_many_branches_there_are(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    for place in (10, 20, 45, None):
        if place is None:
            view.tree.go(ROOT)
        else:
            fork(view.tree, place, tokens=30)
        view.show()
        assert all(
            within for within, _, _ in view.page.locator(".ghost, .chip.current").evaluate_all(SEEN)
        )


def test_a_branch_just_begun_is_low_and_one_that_goes_on_high(shown: Callable[..., Shown]) -> None:
    view = shown()
    page = view.page
    tree = view.tree
    tree.go_back()
    view.show()
    page.locator(".ghost").last.click()
    view.answer()
    low = page.locator(".run.grows").evaluate_all(SEEN)[0][2]
    for _ in range(5):
        for _ in range(8):
            tree.step()
        view.show()
    assert page.locator(".run.grows").evaluate_all(SEEN)[0][2] > 2 * low - 1
    assert page.locator(".run.grows .chip.current").evaluate_all(SEEN)[0][0]


def test_the_end_of_the_text_stays_in_view_when_it_is_paused(shown: Callable[..., Shown]) -> None:
    view = shown()
    tree = view.tree
    for _ in range(10):
        for _ in range(10):
            tree.step()
        view.show(playing=True)
    view.show()
    bottoms = [
        view.page.locator(part).evaluate("one => one.getBoundingClientRect().bottom")
        for part in (".chip.current", ".grows .text")
    ]
    assert bottoms[0] <= bottoms[1] + 1


def test_while_it_grows_the_card_waits_and_what_comes_joins_what_is_there(
    shown: Callable[..., Shown],
) -> None:
    view = shown()
    tree = view.tree
    for _ in range(5):
        tree.step()
    view.show(playing=True)
    at_length(view.page, 105)
    expect(view.page.locator(".card .name").first).to_have_text("The text grows")
    assert [chip.get_attribute("data-node") for chip in chips(view.page).all()] == [
        str(node.id) for node in tree.path()
    ]
    chips(view.page).last.hover()
    expect(view.page.locator(".card .note").last).to_have_text("Pause to see it.")
    table = csv_rows(view.page)
    assert tokens(table) == [node.token for node in tree.path()]
    assert "" not in {row["how chosen"] for row in path(table)}


# In the app


def opened(visit: Visit, prompt: str = PROMPT, model: str = MODEL, **query: object) -> Page:
    page = visit.go("generate", model=model, prompt=prompt, **query)
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    return page


def with_text(visit: Visit, tokens: int, **query: object) -> Page:
    """The page with a text of at least so many tokens; one that stands there already is kept."""
    page = opened(visit, **query)
    for count in range(length(page) + 1, tokens + 1):
        page.get_by_role("button", name="Step").click()
        at_length(page, count)
    visit.settle()
    return page


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def test_a_token_clicked_joins_the_text_the_code_makes_the_tree_and_a_reload_brings_the_text_back(
    visit: Visit,
) -> None:
    page = opened(visit)
    before = csv_rows(page)
    ghost = page.locator(".ghost").nth(2)
    token = int(ghost.get_attribute("data-token") or "")
    ghost.click()
    at_length(page, len(tokens(before)) + 1)
    after = csv_rows(page)
    assert tokens(after) == [*tokens(before), token]
    assert path(after)[-1]["how chosen"] == "chosen by hand"
    assert len(after) == len(before) + 1

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code(page), {})
    for row, line in zip(path(after), printed.getvalue().splitlines(), strict=True):
        position, token_id, *label, logprob, total = line.split(" ")
        assert (row["position"], row["token id"], row["token"]) == (
            position,
            token_id,
            " ".join(label),
        )
        assert float(logprob) == pytest.approx(float(row["log-probability (nats)"]), abs=1e-6)
        assert float(total) == pytest.approx(float(row["sum of the branch (nats)"]), abs=1e-6)

    page.reload()
    visit.settle()
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    assert tokens(csv_rows(page)) == tokens(after)


def test_a_link_reopens_the_head_and_looking_asks_nothing_of_the_server(standing: Visit) -> None:
    page = with_text(standing, 4, attended="2.3")
    heads = page.locator(".heads")
    expect(heads).to_have_value("2.3")
    sent = len(standing.sent)
    chips(page).nth(3).hover()
    heads.select_option("2.1")
    expect(page).to_have_url(re.compile(r"attended=2\.1"))
    page.locator(".slider").fill("3")
    standing.settle()
    assert len(standing.sent) == sent
    page.get_by_role("button", name="Step").click()
    standing.settle()
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    box.fill("Another prompt")
    box.press("Control+Enter")
    standing.settle()
    expect(heads).to_have_value("2.1")
    expect(page).to_have_url(re.compile(r"prompt=Another.*attended=2\.1"))


# Where the view's parts stand, written down at every frame that the browser draws; a part that is
# gone has no place. While scripts follow each other closely, Streamlit itself may take a view away
# for a frame and put a new one there: it is left out.
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


def pause(visit: Visit) -> None:
    button(visit.page, "Pause").click()
    expect(button(visit.page, "Play")).to_be_visible(timeout=PATIENCE)
    visit.settle()


@pytest.mark.full
def test_while_it_plays_nothing_jumps_and_no_token_is_lost(visit: Visit) -> None:
    # the fastest may be at its end before a busy machine has looked
    page = opened(visit, speed="Medium")
    before = length(page)
    button(page, "Play").click()
    expect(button(page, "Pause")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".status")).not_to_have_text(
        re.compile(f"^{before:,} tokens"), timeout=PATIENCE
    )
    page.evaluate(WATCH)
    at = length(page)
    # Until it has drawn a few times and shown several messages, however long that takes here.
    page.wait_for_function("frames > 20", timeout=PATIENCE)
    for _ in range(5):
        expect(page.locator(".status")).not_to_have_text(
            re.compile(f"^{at:,} tokens"), timeout=PATIENCE
        )
        at = length(page)
    places = page.evaluate("[...places]")
    assert len(places) == 1, places
    assert "gone" not in places[0]
    pause(visit)
    assert length(page) > before
    table = csv_rows(page)
    assert len(tokens(table)) == length(page)
    assert all(row["how chosen"] for row in table)
    expect(page.locator(".card .line").first).to_be_visible()


@pytest.mark.full
def test_who_leaves_while_it_plays_and_comes_back_sees_the_whole_tree(visit: Visit) -> None:
    page = with_text(visit, 3, speed="Slow")
    chips(page).first.click()
    at_length(page, 1)
    page.locator(".ghost").nth(2).click()
    at_length(page, 2)
    button(page, "Play").click()
    expect(button(page, "Pause")).to_be_visible(timeout=PATIENCE)
    menu = page.get_by_test_id("stSidebar")
    menu.get_by_role("link", name="Positions", exact=True).click()
    expect(page).to_have_title("Positions · gptviz", timeout=PATIENCE)
    menu.get_by_role("link", name="Generate", exact=True).click()
    expect(page.locator(".stage .chip.current")).to_be_visible(timeout=PATIENCE)
    pause(visit)
    table = csv_rows(page)
    assert len(tokens(table)) == length(page)
    assert any(row["on the current path"] == "no" for row in table)


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


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.full)])
def test_a_step_and_play_in_one_moment_lose_no_token(standing: Visit, times: int) -> None:
    page = opened(standing, speed="Fast")
    at = length(page)
    for _ in range(times):
        clicks(page, "Step", "Play")
        expect(button(page, "Pause")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".status")).not_to_have_text(
            re.compile(f"^{at:,} tokens"), timeout=PATIENCE
        )
        pause(standing)
        at = length(page)
        expect(chips(page)).to_have_count(at)
        assert len(tokens(csv_rows(page))) == at
