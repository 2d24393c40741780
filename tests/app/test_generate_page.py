"""The Generate page as a reader meets it, without a browser."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.components import generation_tree
from gptviz.components.kit import PART, PayloadPart, unpack
from gptviz.figures.kit.format import percent
from gptviz.generate import budget
from gptviz.generate.generation import window_start
from gptviz.generate.repetition import loop_at_end
from gptviz.generate.route import Route
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT
from gptviz.model import Record
from gptviz.text import CharTokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.ui.pages.generate import drafting, link, pace, tree
from gptviz.ui.pages.generate import writing as text
from gptviz.ui.pages.generate.tree import Picture, first_words
from gptviz.ui.pages.generate.writing import Writing
from gptviz.ui.widgets import escape_markdown
from tests.app.conftest import clear_caches
from tests.app.opening import opened, page_at, payload, says, views
from tests.command_line import printed_elsewhere
from tests.tiny import TinyModel, scrambled, tiny
from tests.waiting import PATIENCE

ROOT_FOLDER = Path(__file__).resolve().parents[2]
FIRST = 12
FORK = 6
PROMPT = "the fox"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tokens at the start, and a tick that ends with the tokens that are due."""
    monkeypatch.setattr(text, "FIRST_TOKENS", FIRST)
    monkeypatch.setattr(text, "FORK_TOKENS", FORK)
    monkeypatch.setattr(text, "TICK_SECONDS", 600.0)


class Clock:
    """A clock that stands still unless a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that the page reads."""
    clock = Clock()
    monkeypatch.setattr(pace, "perf_counter", clock)
    return clock


@pytest.fixture(autouse=True)
def _tiny(tiny_model: TinyModel) -> None:
    tiny_model()


page = page_at("pages/generate.py", model="tiny", prompt=PROMPT)
# The route of a text that has no tokens.
NOTHING = Route.route_to([]).line


def writing(at: AppTest) -> Writing:
    return at.session_state["writing"]


def picture(at: AppTest) -> Picture:
    return at.session_state["picture"]


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    return at


def shown(at: AppTest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of the tree, as its view gets them."""
    header, arrays = payload(at, "tree")
    carried = [
        PayloadPart.from_element(one.proto.bytes)
        for one in views(at)
        if one.proto.component_name == PART
    ]
    for earlier, columns in (
        unpack(part.data) for part in carried if part.name in header["part_names"]
    ):
        if "node" in columns:
            header["labels"] = earlier["labels"] | header["labels"]
            arrays |= {
                name: np.concatenate([columns[name], arrays[name]])
                for name in ("node", "token", "parent")
            }
    return header, arrays


def drawn_path(at: AppTest) -> list[str]:
    """The labels of the current path as the view has them."""
    header, arrays = shown(at)
    rows = {int(node): i for i, node in enumerate(arrays["node"])}
    labels = []
    node = header["current"]
    while node != ROOT:
        labels.append(header["labels"][str(arrays["token"][rows[node]])])
        node = int(arrays["parent"][rows[node]])
    return header["prompt"] + labels[::-1]


def logits_after(ids: list[int]) -> torch.Tensor:
    """The logits after `ids`, by a whole forward pass over the tokens that the model sees."""
    model = gptviz.load("tiny").model
    seen = ids[window_start(len(ids), model.config.context_length) :]
    return model(torch.tensor([seen]))[0, -1].detach().double()


@pytest.mark.parametrize("prompt", [PROMPT, "the quick brown fox jumps over"])
def test_the_page_opens_on_the_text_that_the_library_writes(prompt: str) -> None:
    at = page(prompt=prompt)
    assert len(writing(at).written_nodes) == FIRST
    assert writing(at).text == gptviz.load("tiny").generate(prompt, FIRST, temperature=0.8, seed=0)
    seen = prompt[-8:]  # what the model sees
    assert "".join(drawn_path(at)).replace("␣", " ").replace("⏎", "\n") == seen + writing(at).text


def test_a_sentence_counts_the_likeliest_tokens_and_names_the_least_likely_one() -> None:
    at = page()
    lm = gptviz.load("tiny")
    ids = writing(at).ids
    seen = lm.encode(PROMPT).tolist() + ids
    shares = torch.stack(
        [logits_after(seen[:end]).softmax(-1) for end in range(len(seen) - len(ids), len(seen))]
    )
    likeliest = int((shares.argmax(-1) == torch.tensor(ids)).sum())
    drawn = shares[torch.arange(len(ids)), torch.tensor(ids)]
    place = int(drawn.argmin())
    times = "1 time" if likeliest == 1 else f"{likeliest} times"
    said = (
        f"The text goes on for {len(ids)} tokens; the likeliest one was taken {times}. The least "
        "likely is "
        f"“{lm.tokenizer.label(ids[place])}”, token {place + 1}, with "
        f"{percent(float(drawn[place]))}:"
    )
    assert said in says(at)
    begins = first_words(PROMPT, lm.tokenizer.decode(ids[:16]))
    assert begins.endswith(" ".join(lm.tokenizer.decode(ids[:16]).split()))
    assert f"It writes: “{begins}" in says(at).replace("\\", "")
    at.slider(key="temperature").set_value(0.0).run()
    press(at, "restart")
    for _ in range(3):
        press(at, "one token")
    assert "The text goes on for 3 tokens, always with the likeliest one." in says(at)


@pytest.mark.parametrize(
    ("prompt", "text", "begins"),
    [
        ("so pale?\nH", "ence shall\nbe", "Hence shall be"),
        ("gave a book to", " Mary. But", "Mary. But"),
        ("gave a book to ", "Mary", "Mary"),
        ("It’s 3", "rd", "rd"),
        ("pale", ", pale", ", pale"),
        ("", "abc", "abc"),
        ("pale", "", ""),
    ],
)
def test_the_quotation_begins_with_a_whole_word(prompt: str, text: str, begins: str) -> None:
    assert first_words(prompt, text) == begins


def test_a_link_to_no_text_opens_at_the_prompt_and_offers_what_may_come_next() -> None:
    at = page(route=NOTHING)
    assert list(writing(at).tree.nodes) == [ROOT]
    assert "Nothing is written yet" in says(at)
    assert "".join(drawn_path(at)).replace("␣", " ") == PROMPT
    p, likeliest = logits_after(writing(at).tree.ids()).softmax(-1).sort(descending=True)
    assert [ghost.token for ghost in picture(at).ghosts()] == likeliest[
        : text.ALTERNATIVES
    ].tolist()
    assert shown(at)[1]["ghost_p"][:, 0].tolist() == pytest.approx(
        p[: text.ALTERNATIVES].tolist(), rel=1e-3
    )
    assert address(at) == {"route": NOTHING}


def test_what_the_page_opens_on_by_itself_needs_no_route() -> None:
    at = page()
    assert address(at) == {}
    press(at, "undo")
    assert "route" in address(at)
    at.text_area(key="prompt").set_value("the dog").run()
    assert address(at) == {}


def test_a_fork_leaves_the_text_where_another_token_was_likely_and_the_next_one_elsewhere() -> None:
    at = page()
    before = writing(at).ids
    now = writing(press(at, "try A fork"))
    assert len(now.tree.nodes) == 1 + FIRST + FORK
    (fork,) = [node for node in now.tree.nodes.values() if len(node.children) == 2]
    taken, other = (now.tree.nodes[child] for child in fork.children.values())
    assert taken in now.written_nodes
    assert other.drawn is None
    places = now.written_nodes[FIRST // 6 : FIRST // 2]
    likeliest = max(
        c.probability for node in places for c in node.candidates if c.token != node.token
    )
    assert other.logprob == pytest.approx(np.log(likeliest))
    press(at, "try A fork")
    assert now.ids == before
    assert len(now.tree.nodes) > 1 + FIRST + FORK


def test_undo_a_step_and_a_restart_draw_the_same_tokens() -> None:
    at = page(temperature="1.5", seed="3")
    before = writing(at).written_nodes
    nodes = len(writing(at).tree.nodes)
    press(press(at, "undo"), "undo")
    assert writing(at).written_nodes == before[:-2]
    assert len(shown(at)[1]["node"]) == nodes - 1, "what was written stays as a branch"
    press(press(at, "one token"), "one token")
    assert writing(at).written_nodes == before
    assert len(writing(at).tree.nodes) == nodes, "the same tokens are no new ones"
    press(at, "restart")
    assert writing(at).ids == []
    assert len(drawn_path(at)) == len(PROMPT)
    assert at.button(key="undo").disabled
    assert at.button(key="restart").disabled
    assert writing(press(at, "one token")).written_nodes == before[:1]


def test_playing_grows_by_the_clock_until_paused(clock: Clock) -> None:
    at = press(page(), "play")
    assert writing(at).playing
    assert len(writing(at).written_nodes) == FIRST + 1, "one token at once"
    clock.seconds += 0.25
    at.run()
    assert len(writing(at).written_nodes) == FIRST + 6, (
        "a quarter of a second at 20 tokens a second"
    )
    press(at, "pause")
    clock.seconds += 0.25
    at.run()
    writing(at).tick(400.0)
    assert len(writing(at).written_nodes) == FIRST + 6, "a tick that comes after the pause"
    assert not writing(at).playing


def test_the_text_stops_where_the_model_ends_it_says_so_and_goes_on_if_asked(
    tiny_model: TinyModel, clock: Clock
) -> None:
    ids = writing(page()).ids
    end = ids[FIRST // 2]
    tiny_model(card={"end_tokens": [end]})
    clear_caches()
    at = page()
    now = writing(at)
    place = ids.index(end)
    assert now.ids == ids[: place + 1], "the text that the page opens on ends there"
    assert any("The model ended its text here" in caption.value for caption in at.caption)
    press(at, "play")
    clock.seconds += 100
    at.run()
    assert now.ids[: place + 2] == ids[: place + 2], "Play goes on all the same"
    assert now.length > place + 1
    at = page(stop="false")
    assert writing(at).ids == ids


def test_a_page_that_was_drawn_before_the_server_was_started_again_is_loaded_anew() -> None:
    at = page()
    again = AppTest.from_file(str(ROOT_FOLDER / "app.py"), default_timeout=PATIENCE)
    again.switch_page("pages/generate.py")
    again._run(
        WidgetStates(
            widgets=[WidgetState(id=at.button(key="one token").proto.id, trigger_value=True)]
        )
    )
    assert "writing" not in again.session_state, (
        "its query lacks what views wrote into the address: no text begins"
    )
    (script,) = again.get("html")
    assert "location.reload()" in script.proto.body
    assert not any("location.reload()" in one.proto.body for one in at.get("html")), (
        "that would never end"
    )


@pytest.mark.parametrize(
    ("ticks", "seconds", "rate", "drawn"),
    [(1, 3_600, 20.0, 20 * pace.CATCH_UP), (8, 0.125, 2.0, 2)],
)
def test_a_late_tick_catches_up_but_not_for_ever_and_the_fraction_of_a_token_counts_at_the_next(
    ticks: int, seconds: float, rate: float, drawn: int, clock: Clock
) -> None:
    now = writing(press(page(), "play"))
    before = len(now.written_nodes)
    for _ in range(ticks):
        clock.seconds += seconds
        now.tick(rate)
    assert len(now.written_nodes) - before == drawn


def test_a_tick_ends_when_its_time_is_up(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    now = writing(press(page(), "play"))
    before = len(now.written_nodes)
    times = iter([0.0, 0.0, 0.05, 0.11])
    monkeypatch.setattr(text, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(text, "perf_counter", lambda: next(times))
    clock.seconds += 0.4
    now.tick(20.0)
    assert len(now.written_nodes) - before == 2, "the other six are left out"


def test_a_click_during_a_tick_leaves_text_and_model_in_step(clock: Clock) -> None:
    now = writing(press(page(), "play"))
    prompt = now.tree.prompt

    def ticking() -> None:
        for _ in range(15):
            now.playing = True
            clock.seconds += 0.2
            now.tick(20.0)

    ticks = threading.Thread(target=ticking)
    ticks.start()
    for _ in range(20):
        now.undo(2)
        now.step()
    ticks.join()
    assert now.tree.ids() == prompt + now.ids
    torch.testing.assert_close(
        now.tree.compute_after().logits.double(), logits_after(now.tree.ids()), rtol=1e-4, atol=1e-4
    )


def test_another_token_than_the_drawn_one_is_gone_on_from() -> None:
    at = page(temperature="0")
    now = writing(at)
    before = writing(at).ids
    place = now.written_nodes[4].parent
    other = now.written_nodes[4].candidates[3].token
    assert other != before[4]
    assert tree.take_clicked(now, {"number": now.number, "at": place, "token": other})
    at.run()
    assert now.ids == [*before[:4], other]
    header, arrays = shown(at)
    row = arrays["node"].tolist().index(header["current"])
    assert header["how"][arrays["how"][row]] == "chosen by hand"
    assert arrays["draw_logprob"][row] == -np.inf, "temperature 0 never draws it"
    press(at, "one token")
    assert now.ids[5] == int(logits_after([*now.tree.prompt, *before[:4], other]).argmax())


def test_a_click_on_a_token_goes_there_and_a_click_on_a_later_one_comes_back() -> None:
    at = page()
    now = writing(at)
    before = writing(at).written_nodes
    logits = now.tree.compute_after().logits.clone()
    press(at, "play")
    assert tree.go_clicked(now, {"number": now.number, "at": before[2].id})
    assert now.written_nodes == before[:3]
    assert not now.playing
    now.step()
    now.take((before[3].token + 1) % 20, before[2].id)
    tree.go_clicked(now, {"number": now.number, "at": before[-1].id})
    assert now.written_nodes == before
    assert torch.equal(now.tree.compute_after().logits, logits)


@pytest.mark.parametrize(
    "wrong", [{"number": 0}, {"at": 10_000}, {"at": True}, {"at": "3"}, {"at": None}]
)
def test_a_click_on_what_is_not_there_does_nothing(wrong: dict[str, Any]) -> None:
    now = writing(page())
    before = now.ids
    event = {"number": now.number, "at": 3, "token": 1} | wrong
    assert not any(
        act(now, event) for act in (tree.go_clicked, tree.take_clicked, tree.attend_clicked)
    )
    assert now.ids == before


def test_the_attention_of_a_step_comes_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text, "MOST_BYTES", 1)
    at = page()
    now = writing(at)
    press(at, "one token")
    node = now.written_nodes[3].id
    assert node not in shown(at)[1]["place"][:, 0]
    assert tree.attend_clicked(now, {"number": now.number, "at": node})
    at.run()
    assert node in shown(at)[1]["place"][:, 0]


def test_the_text_that_is_downloaded_begins_with_the_prompt_and_reads_as_the_same_tokens() -> None:
    now = writing(page())
    assert now.document == PROMPT + now.text
    now = writing(page(model="reversal", prompt="80 94 0"))
    assert now.document.startswith("80 94 0 ")
    assert now.lm.tokenizer.encode(now.document).ids == now.tree.ids()
    now = writing(
        page(model="sentences", prompt="When Mary and John went")
    )  # a text that goes on with a word begins with a space
    assert now.document.startswith("When Mary and John went ")
    assert now.lm.tokenizer.encode(now.document).ids == now.tree.ids()


@pytest.mark.parametrize("model", ["addition", "reversal"])
def test_of_a_task_one_sequence_is_written_and_it_says_so(
    model: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "FIRST_TOKENS", 120)
    at = opened("pages/generate.py", model=model)
    now = writing(at)
    task = gptviz.load(model).task
    assert task is not None
    assert len(now.tree.ids()) == task.length
    assert ("Ones first" in says(at)) == (model == "addition")
    press(at, "try A fork")
    # in the branch too
    assert max(node.position for node in now.tree.nodes.values()) == task.length - 1
    said = next(
        caption.value
        for caption in at.caption
        if f"have {task.length} tokens: this one is complete" in caption.value
    )
    plainly = escape_markdown(task.as_people_write(now.document))
    assert said.endswith(
        f"As people write it: {plainly}." if model == "addition" else "all the same."
    )
    press(press(at, "restart"), "play")
    clock.seconds += 100
    at.run()
    assert len(now.tree.ids()) == task.length, "Play stops there"
    assert not now.playing
    press(at, "one token")
    assert len(now.tree.ids()) == task.length + 1, "Step goes on all the same"
    whole = now.lm.tokenizer.decode(now.tree.ids()[: task.length])
    assert writing(page(model=model, prompt=whole)).length == 0, "nothing is missing"
    assert writing(page(model=model, prompt=whole, stop="false")).length == 120


def test_another_prompt_or_model_starts_again_and_says_so(tiny_model: TinyModel) -> None:
    tiny_model("other", seed=5)
    at = page()
    before = writing(at)
    assert not at.toast
    at.text_area(key="prompt").set_value("dog").run()
    assert writing(at) is not before
    assert "a new text begins" in at.toast[0].value
    assert writing(at).text == gptviz.load("tiny").generate("dog", FIRST, temperature=0.8)
    at.selectbox(key="model").set_value("other").run()
    assert writing(at).text == gptviz.load("other").generate("dog", FIRST, temperature=0.8)


def address(at: AppTest) -> dict[str, str]:
    """The values that the view writes into the address of the page."""
    return {key: value for key, value in shown(at)[0]["address"].items() if value is not None}


def reopened(at: AppTest, **query: str) -> AppTest:
    """The page in a new session, at the address that the page `at` has now."""
    controls = {
        key: str(at.session_state[key])
        for key in ("temperature", "top_k", "top_p", "seed", "prompt")
    }
    return page(**controls | address(at) | query)


def wander(at: AppTest) -> Writing:
    """Take tokens by hand, change settings, undo, and leave some branches aside."""
    now = writing(at)
    tree.take_clicked(now, {"number": now.number, "at": now.written_nodes[7].id, "token": 3})
    press(at.run(), "one token")
    at.slider(key="temperature").set_value(1.7).run()
    press(at, "one token")
    press(at, "one token")
    press(at, "undo")
    at.select_slider(key="top_k").set_value(4)
    at.select_slider(key="seed").set_value(9).run()
    press(at, "one token")
    press(at, "try A fork")
    return now


def test_the_address_reopens_the_branch_token_by_token_on_another_server(
    fresh_caches: None,
) -> None:
    at = page()
    before = wander(at)
    clear_caches()  # what a server that starts again knows
    again = writing(reopened(at))
    assert again is not before
    assert again.ids == before.ids
    assert [node.drawn for node in again.written_nodes] == [
        node.drawn for node in before.written_nodes
    ]
    assert [node.total for node in again.written_nodes] == [
        node.total for node in before.written_nodes
    ]
    assert len(again.tree.nodes) - 1 == len(again.ids), "the branch alone"
    assert not again.differs


def test_a_long_text_of_a_link_is_written_while_the_reader_looks_on_or_left_on_the_way(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page()
    before = wander(at)
    line = address(at)["route"]
    clear_caches()
    monkeypatch.setattr(link, "BUDGET", 0)
    again = reopened(at)
    now = writing(again)
    assert now.playing
    assert address(again)["route"] == line, "a reload in between loses nothing"
    press(again, "pause")
    left = len(now.ahead)
    assert any(f"{left} more tokens" in info.value for info in again.info)
    assert now.ids == before.ids[:-left]
    press(again, "play")
    clock.seconds += 1
    again.run()
    assert now.ids == before.ids
    assert not now.playing
    assert address(again)["route"] == line
    clear_caches()
    left_on_the_way = press(press(reopened(at), "undo"), "one token")
    written_alone = writing(left_on_the_way)
    assert not written_alone.ahead
    assert address(left_on_the_way)["route"] != line
    clear_caches()
    assert writing(reopened(left_on_the_way)).ids[: len(written_alone.ids)] == written_alone.ids


def test_a_link_to_a_text_that_the_model_no_longer_writes_says_so(tiny_model: TinyModel) -> None:
    at = page()
    wander(at)
    clear_caches()
    tiny_model(seed=5)
    again = reopened(at)
    assert any("made for another text" in warning.value for warning in again.warning)


def test_beyond_its_bound_the_address_leaves_the_text_out_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "LONGEST_ROUTE", 20)
    at = page()
    wander(at)
    assert not address(at)
    assert any("cannot carry this text" in info.value for info in at.info)
    assert writing(reopened(at)).is_untouched, "the page opens as usual"


@pytest.mark.parametrize(
    "route", ["nonsense", "n99999999_123456", "f999_123456", "<script>", "n3", f"kept-{32 * '0'}"]
)
def test_a_route_that_leads_nowhere_is_named_and_the_page_opens_as_usual(route: str) -> None:
    at = page(route=route, tree="../../x")
    assert writing(at).is_untouched
    named = (
        "long text that this machine does not have"
        if route.startswith("kept")
        else "The link asks for route"
    )
    assert any(named in warning.value for warning in at.warning)


@pytest.mark.parametrize("title", ["Always the likeliest", "Too hot"])
def test_try_this_keeps_the_prompt_and_what_was_written(title: str) -> None:
    at = page(temperature="1.3", seed="2")
    before = writing(at)
    ids = before.ids
    nodes = set(before.tree.nodes)
    end = before.tree.current
    press(at, f"try {title}")
    now = writing(at)
    assert now is before
    assert at.session_state["prompt"] == PROMPT
    assert nodes <= set(now.tree.nodes)
    sampling = now.sampling
    assert now.text == gptviz.load("tiny").generate(
        PROMPT, FIRST, temperature=sampling.temperature, top_k=sampling.top_k, seed=2
    )
    press(at, "try back")
    assert (now.tree.current, now.ids) == (end, ids)
    assert now.sampling.temperature == 1.3


def test_a_text_that_repeats_itself_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page()
    assert loop_at_end(writing(at).ids) is None
    assert not any("repeats" in caption.value for caption in at.caption)
    now = writing(at)
    now.restart()
    for token in [1, 2, 3, *[4, 5, 6, 7] * 3]:
        now.take(token)
    at.run()
    assert any(
        "From token 4 on, the text repeats the same 4 tokens." in caption.value
        for caption in at.caption
    )


def test_a_large_model_opens_on_less_text_and_each_on_some() -> None:
    def length(**changes: Any) -> int:
        model = scrambled(tiny(**changes))
        return budget.affordable(model, 10, 120, 2e9)

    small = length(context_length=256)
    large = length(context_length=256, d_model=384, n_head=6, n_layer=6, d_mlp=1536)
    ahead = length(context_length=256, d_model=384, n_head=6, n_layer=6, d_mlp=1536, mask="full")
    assert small == 120
    assert 120 > large > ahead >= budget.LEAST_TOKENS


@pytest.mark.parametrize("n_kv_head", [None, 1])
def test_the_memory_of_the_cache_is_that_of_the_keys_and_values_of_a_pass(
    tiny_model: TinyModel, n_kv_head: int | None
) -> None:
    tiny_model(context_length=32, n_kv_head=n_kv_head)
    now = writing(page())
    record = Record("*.[kv]")
    ids = now.tree.ids()
    with torch.inference_mode():
        now.lm.model(torch.tensor([ids]), tap=record)
    expected = sum(value.nbytes for value in record.values.values())
    said = tree.memory(now)
    assert f"The cache now holds {len(ids)} tokens" in said
    assert f"**{expected:,} bytes**" in said
    factors = said[said.index("2 (a key") : said.index(" bytes a number")]
    assert math.prod(int(number) for number in re.findall(r"\d+", factors)) == expected
    assert f"of which {expected // 2:,} in each block" in said
    assert "Nothing is kept" in tree.memory(writing(page(model="generator-unmasked")))
    assert "no attention" in tree.memory(writing(page(model="ladder-0")))


def test_a_text_has_an_end(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_TOKENS", FIRST + 2)
    at = press(page(speed="Fast"), "play")
    for _ in range(3):
        clock.seconds += 1
        at.run()
    assert len(writing(at).written_nodes) == FIRST + 2
    assert not writing(at).playing
    assert at.button(key="one token").disabled
    assert at.button(key="play").disabled
    assert any("the most this page keeps" in info.value for info in at.info)
    writing(at).step()
    assert len(writing(at).written_nodes) == FIRST + 2
    press(at, "undo")
    assert not at.button(key="one token").disabled


def printed_here(code: str) -> str:
    """The output of `code`, run in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<the code shown>", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.mark.parametrize(
    ("branches", "printed_by"),
    [
        (False, printed_here),
        (True, printed_here),
        pytest.param(True, printed_elsewhere, marks=pytest.mark.full),
    ],
)
def test_the_code_shown_makes_the_same_tree(
    branches: bool, printed_by: Callable[[str], str]
) -> None:
    at = page(temperature="1.2", top_k="5", top_p="0.9", seed="7")
    now = writing(at)
    if branches:
        now.take(3, now.written_nodes[2].id)
        text.grow(now, 12)
        now.go(now.written_nodes[-2].id)
        at.run()
    code = shown(at)[0]["code"]
    more = (
        "\nprint(sorted((tree.ids(node), tree.nodes[node].total) for node in "
        "tree.nodes))\nprint(computed.logits.tolist())"
    )
    *lines, nodes, logits = printed_by(code + more).splitlines()
    printed = [line.split(" ") for line in lines]
    assert [(int(line[0]), int(line[1])) for line in printed] == [
        (node.position, node.token) for node in now.written_nodes
    ]
    assert [float(line[-2]) for line in printed] == pytest.approx(
        [node.logprob for node in now.written_nodes], abs=1e-6
    )
    assert [float(line[-1]) for line in printed] == pytest.approx(
        [node.total for node in now.written_nodes], abs=1e-6
    )
    expected = sorted((now.tree.ids(node), now.tree.nodes[node].total) for node in now.tree.nodes)
    for (ids, total), (expected_ids, expected_total) in zip(
        ast.literal_eval(nodes), expected, strict=True
    ):
        assert ids == expected_ids
        assert total == pytest.approx(expected_total, abs=1e-6)
    last = now.tree.chosen_from(now.tree.current).logits
    assert ast.literal_eval(logits) == pytest.approx(last.tolist(), abs=1e-6)


def test_an_unchanged_tree_is_not_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page()
    before = picture(at).pack_picture()
    monkeypatch.setattr(generation_tree, "pack_tree", lambda *_: pytest.fail("packed again"))
    assert picture(at).pack_picture() is before
    writing(at).sampling = Sampling(temperature=0.1)
    with pytest.raises(pytest.fail.Exception, match="packed again"):
        picture(at).pack_picture()


@pytest.mark.full
def test_of_a_long_text_a_step_sends_little(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(context_length=256)
    monkeypatch.setattr(text, "FIRST_TOKENS", 300)
    at = page()

    def sent(at: AppTest) -> dict[str, bytes]:
        """The elements of the tree, by their hashes: Streamlit sends those that a browser lacks,
        and short ones.
        """
        return {
            one.proto.id: one.proto.bytes
            for one in views(at)
            if "-tree" in one.proto.id and one.proto.bytes
        }

    before = sent(at)
    press(at, "one token")
    after = sent(at)
    new = sum(
        len(data) for name, data in after.items() if before.get(name) != data or len(data) < 10_000
    )
    assert sum(map(len, after.values())) > 500_000
    assert new < 100_000
    node = shown(at)[0]["current"]
    path = writing(at).written_nodes
    assert node == path[-1].id
    assert drawn_path(at)[len(PROMPT) :] == [
        gptviz.load("tiny").tokenizer.label(one.token) for one in path
    ]


def test_a_full_tree_drops_old_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_NODES", FIRST + FORK + 1)
    at = press(page(), "try A fork")
    for _ in range(4):
        press(at, "one token")
    assert len(writing(at).tree.nodes) - 1 == FIRST + FORK + 1
    assert any("3 tokens at the ends of its oldest" in caption.value for caption in at.caption)


def test_speed_is_the_models_time_and_not_the_readers(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page()
    now = writing(at)
    model = writing(at).lm.model
    assert now.speedometer.tokens_per_second is None, "the clock stood still"
    forward = model.forward

    def a_hundredth_of_a_second(*args: Any, **kwargs: Any) -> torch.Tensor:
        clock.seconds += 0.01
        return forward(*args, **kwargs)

    monkeypatch.setattr(model, "forward", a_hundredth_of_a_second)
    now.step()  # its logits were there before
    for _ in range(5):
        assert picture(at).ghosts()
        clock.seconds += 60  # the reader thinks
        now.step()
        now.step()
    now.undo(3)
    for _ in range(3):
        now.step()  # nothing is computed
    assert now.speedometer.tokens_per_second == pytest.approx(100)


def branches(at: AppTest) -> dict[str, list[int]]:
    """The tokens of every branch by how its last one was chosen, as the view says it."""
    header, arrays = shown(at)
    tree = writing(at).tree
    said = {
        int(node): header["how"][how]
        for node, how in zip(arrays["node"], arrays["how"], strict=True)
    }
    ends = [node for node in tree.nodes if node and not tree.nodes[node].children]
    return {said[end]: [one.token for one in tree.path(end)] for end in ends}


def test_a_model_with_edits_writes_beside_what_it_writes_without_them() -> None:
    lm = gptviz.load("tiny")
    edited = lm.edited("blocks.1.mlp")
    at = page(edits="blocks.1.mlp")
    now = writing(at)
    assert now.text == edited.generate(PROMPT, FIRST, temperature=0.8, seed=0)
    without = branches(at)["written without edits"]
    assert lm.tokenizer.continuation(without) == lm.generate(
        PROMPT, len(without), temperature=0.8, seed=0
    )
    assert without != now.ids[: len(without)]
    # What the last token of each step attended to is kept here too.
    assert now.tree.compute_after().attention.shape == (
        2,
        3,
        min(lm.model.config.context_length, len(now.tree.ids())),
    )


def test_a_direction_writes_beside_what_the_model_writes_without_it_and_with_it_turned_round() -> (
    None
):
    lm = gptviz.load("tiny")
    found = lm.direction(["hello"], ["you"], block=1, name="own")
    at = page(edits=found.edit(2))
    assert writing(at).text == lm.edited(found.edit(2)).generate(
        PROMPT, FIRST, temperature=0.8, seed=0
    )
    for said, other in (
        ("written without edits", lm),
        (f"written with 1 edit: {found.edit(-2)}", lm.edited(found.edit(-2))),
    ):
        tokens = branches(at)[said]
        assert lm.tokenizer.continuation(tokens) == other.generate(
            PROMPT, len(tokens), temperature=0.8, seed=0
        )


def test_where_edits_change_the_text_stays_beside_the_new_one_and_can_be_gone_on_with() -> None:
    lm = gptviz.load("tiny")
    at = press(press(page(), "one token"), "one token")
    before = writing(at).ids
    at.query_params["edits"] = "blocks.1.mlp"
    at.run()
    now = writing(at)
    tree = writing(at).tree
    assert lm.edited("blocks.1.mlp").generate(PROMPT, FIRST, temperature=0.8, seed=0) == now.text
    end = next(node for node in tree.nodes if [one.token for one in tree.path(node)] == before)
    now.go(end)
    press(at, "one token")
    logits = lm.edited("blocks.1.mlp").model(
        torch.tensor([tree.ids(end)[-lm.model.config.context_length :]])
    )[0, -1]
    torch.testing.assert_close(tree.compute_after(end).logits, logits, atol=1e-4, rtol=1e-4)


def test_vocabularies_that_differ_in_unused_tokens_alone_are_the_same(tmp_path: Path) -> None:
    told = []
    for place, (characters, size) in enumerate((("abc", 5), ("abc", 9), ("abd", 9))):
        (folder := tmp_path / str(place)).mkdir()
        (folder / "tokenizer.json").write_text(
            PaddedTokenizer(CharTokenizer(characters), size).to_json()
        )
        told.append(drafting._vocabulary(folder))
    assert told[0] == told[1] != told[2]


def drafted_chips(at: AppTest) -> list[list[Any]]:
    """The chips of the strip of drafts, each as the browser gets it."""
    chips: list[list[Any]] = json.loads(payload(at, "drafts")[1]["tokens"].tobytes())
    return chips


def test_a_drafter_is_one_of_the_models_of_the_same_vocabulary_and_shows_what_the_library_writes() -> (
    None
):
    asked = {"draft": "ladder-2", "drafted": "2", "temperature": "0.7", "seed": "2"}
    at = opened("pages/generate.py", model="ladder-8", prompt="Before we", **asked)
    assert "ladder-2" in at.selectbox(key="draft").options
    assert not {"ladder-8", "bpe", "classifier", "finetune"} & set(
        at.selectbox(key="draft").options
    )
    lm = gptviz.load("ladder-8")
    found = lm.speculate(
        "Before we", gptviz.load("ladder-2"), drafting.TOKENS, temperature=0.7, seed=2, drafted=2
    )
    assert found.sentence("ladder-2", "ladder-8") in says(at)
    chips = drafted_chips(at)
    assert len(chips) == sum(len(one.drafted) + 1 for one in found.rounds)
    written = [
        label
        for label, *_, kind, _ in chips
        if kind in (drafting.ACCEPTED, drafting.INSTEAD, drafting.ONE_MORE)
    ]
    assert written == [lm.tokenizer.label(token) for token in found.tokens]
    first = found.rounds[0].drafted[0]
    assert drafting.note(first).startswith("accepted: q = " if first.accepted else "refused: q = ")
    at.button(key="bring drafts").click().run()
    tree = at.session_state["writing"].tree
    node = tree.nodes[0]
    judged = [one for each in found.rounds for one in each.drafted if one.accepted is not None]
    for one in judged:
        while node.position + 1 < one.position:
            node = tree.nodes[node.children[found.tokens[node.position + 1 - len(tree.prompt)]]]
        said = tree.nodes[node.children[found.tokens[one.position - len(tree.prompt)]]].origin
        what = f"drafted by ladder-2 and {drafting.note(one)}"
        if not one.accepted:
            what = (
                f"drawn instead of “{lm.tokenizer.label(one.token)}” ({drafting.note(one)}), with "
            )
        assert said.startswith(what) or not said, "what the tree had before stays as it was"
    assert sum(bool(node.origin) for node in tree.nodes.values()) > drafting.TOKENS / 2


def test_nothing_drafts_until_it_is_asked_to_and_the_text_itself_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(drafting, "speculate_tokens", lambda *_: pytest.fail("it is computed"))
        assert (
            opened("pages/generate.py", model="ladder-8", prompt="Before we")
            .selectbox(key="draft")
            .value
            == drafting.NONE
        )
    at = opened(
        "pages/generate.py",
        model="ladder-8",
        prompt="Before we",
        draft=drafting.OWN,
        temperature="0",
    )
    assert "of the text's own continuation were accepted" in says(at)
    looking_ahead = opened("pages/generate.py", model="generator-unmasked", prompt="Before we")
    assert "draft" not in [box.key for box in looking_ahead.selectbox]
