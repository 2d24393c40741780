"""The Generate page as a reader meets it, without a browser."""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.learn.generation import window_start
from gptviz.ui import generate
from gptviz.ui.generate import Writing
from tests.app.opening import opened

ROOT = Path(__file__).resolve().parents[2]
FIRST = 12
PROMPT = "the fox"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tokens at the start, and all of them however slow the machine is."""
    monkeypatch.setattr(generate, "FIRST_TOKENS", FIRST)
    monkeypatch.setattr(generate, "FIRST_SECONDS", 600.0)
    monkeypatch.setattr(generate, "TICK_SECONDS", 600.0)


def page(**query: str) -> AppTest:
    at = opened("pages/generate.py", **{"model": "tiny", "prompt": PROMPT} | query)
    assert not at.exception
    return at


def writing(at: AppTest) -> Writing:
    return at.session_state["writing"]


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception
    return at


def strip(at: AppTest, key: str) -> dict[str, Any]:
    (found,) = [one.proto for one in at.get("bidi_component") if one.proto.id.endswith(f"-{key}")]
    return json.loads(found.bytes)


def logits_after(ids: list[int]) -> torch.Tensor:
    """What the model computes after `ids`, by a whole forward pass over the tokens it sees."""
    model = gptviz.load("tiny").model
    seen = ids[window_start(len(ids), model.config.context_length) :]
    return model(torch.tensor([seen]))[0, -1].detach().double()


def test_the_page_opens_on_the_text_that_the_library_writes(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    assert len(writing(at).written) == FIRST
    assert writing(at).text == gptviz.load("tiny").generate(PROMPT, FIRST, temperature=0.8, seed=0)
    labels = [token[0] for token in strip(at, "text")["tokens"]]
    assert "".join(labels).replace("␣", " ").replace("⏎", "\n") == PROMPT + writing(at).text


def test_each_chip_tells_the_models_own_probability_and_what_else_was_likely(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(temperature="0.5", top_k="3")
    chips = strip(at, "text")["tokens"]
    assert all(chip[1] is None for chip in chips[: len(PROMPT)]), "the prompt was not written by the model"
    lm = gptviz.load("tiny")
    ids = lm.encode(PROMPT).tolist()
    for chip, token in zip(chips[len(PROMPT) :], writing(at).ids, strict=True):
        p = torch.softmax(logits_after(ids), -1)
        assert chip[1] == pytest.approx(p[token].item(), rel=1e-3)
        likely = sorted(range(len(p)), key=lambda i: -p[i].item())[:8]
        assert [label for label, _ in chip[2]] == [lm.tokenizer.label(i) for i in likely]
        assert [probability for _, probability in chip[2]] == pytest.approx(p[likely].tolist(), rel=1e-3)
        ids.append(token)
    assert ids == writing(at).generation.ids[0].tolist()


def test_a_step_appends_exactly_one_token(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    before = writing(at).ids
    after = writing(press(at, "one token")).ids
    assert after[:-1] == before


def test_undo_and_a_step_draw_the_same_token(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(temperature="1.5", seed="3")
    before, chips = writing(at).ids, strip(at, "text")["tokens"]
    for _ in range(3):
        press(at, "undo")
    assert writing(at).ids == before[:-3]
    for _ in range(3):
        press(at, "one token")
    assert writing(at).ids == before
    assert strip(at, "text")["tokens"] == chips


def test_restart_goes_back_to_the_prompt_and_writes_the_same_text(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    before = writing(at).ids
    press(at, "restart")
    assert writing(at).ids == []
    assert len(strip(at, "text")["tokens"]) == len(PROMPT)
    assert at.button(key="undo").disabled
    assert at.button(key="restart").disabled
    for _ in range(3):
        press(at, "one token")
    assert writing(at).ids == before[:3]


def test_playing_grows_by_the_clock_until_paused(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = press(page(), "play")
    assert writing(at).playing
    grown = len(writing(at).written)
    assert grown > FIRST
    writing(at)._ticked -= 0.25
    at.run()
    assert len(writing(at).written) >= grown + 5, "a quarter of a second at 20 tokens a second"
    press(at, "pause")
    still = len(writing(at).written)
    at.run()
    assert len(writing(at).written) == still
    assert not writing(at).playing


def test_a_tick_that_comes_after_the_pause_draws_nothing(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    now = writing(press(page(), "play"))
    now.pause()
    before = now.ids
    now._ticked -= 10
    now.tick(400.0)
    assert now.ids == before
    assert not now.playing


def test_a_late_tick_catches_up_but_not_for_ever(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    now = writing(press(page(), "play"))
    before = len(now.written)
    now._ticked -= 3600
    now.tick(20.0)
    assert 0 < len(now.written) - before <= 20 * generate.CATCH_UP + 1


def test_a_click_during_a_tick_leaves_text_and_model_in_step(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    now = writing(press(page(), "play"))
    prompt = now.generation.ids[0, : len(PROMPT)].tolist()

    def ticking() -> None:
        for _ in range(15):
            now._ticked -= 0.2
            now.tick(20.0)

    ticks = threading.Thread(target=ticking)
    ticks.start()
    for _ in range(20):
        now.undo(2)
        now.step()
    ticks.join()
    assert now.generation.ids[0].tolist() == prompt + now.ids
    assert [one.taken.id for one in now.written] == now.ids


def test_another_token_than_the_drawn_one_is_gone_on_from(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(temperature="0")
    before = writing(at).ids
    other = writing(at).written[4].candidates[3]
    assert other.id != before[4]
    writing(at).pick_alternative(len(PROMPT) + 4, 3)
    at.run()
    assert writing(at).ids == [*before[:4], other.id]
    chip = strip(at, "text")["tokens"][-1]
    assert chip[3] == "chosen by hand"
    assert chip[4] == 1
    press(at, "one token")
    prompt = gptviz.load("tiny").encode(PROMPT).tolist()
    assert writing(at).ids[5] == int(logits_after([*prompt, *before[:4], other.id]).argmax())


def test_a_chip_that_is_picked_offers_its_alternatives_and_taking_one_goes_back_there(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    before = writing(at).ids
    writing(at).pick(len(PROMPT) + 2)
    at.run()
    assert strip(at, "text")["settings"]["selected"] == len(PROMPT) + 2
    offered = writing(at).written[2].candidates
    assert [row[0] for row in strip(at, "candidates")["tokens"]] == [candidate.label for candidate in offered]
    assert at.button(key="undo").label == "Undo to here"
    writing(at).pick_candidate(7)
    at.run()
    assert writing(at).ids == [*before[:2], offered[7].id]
    assert strip(at, "text")["settings"]["selected"] is None


def test_undo_to_here_forgets_the_picked_token_and_all_after_it(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    before = writing(at).ids
    writing(at).pick(len(PROMPT) + 5)
    press(at.run(), "undo")
    assert writing(at).ids == before[:5]


def test_picking_the_prompt_or_the_same_chip_again_picks_nothing(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    now = writing(page())
    now.pick(len(PROMPT) + 3)
    assert now.selected == 3
    now.pick(len(PROMPT) + 3)
    assert now.selected is None
    now.pick(2)
    assert now.selected is None


def test_the_next_token_can_be_chosen_by_hand(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    before = writing(at).ids
    p = torch.softmax(logits_after(writing(at).generation.ids[0].tolist()), -1)
    rows = strip(at, "candidates")["tokens"]
    assert [row[1] for row in rows] == pytest.approx(p.sort(descending=True).values[:8].tolist(), rel=1e-3)
    chosen = writing(at).candidates[5].id
    writing(at).pick_candidate(5)
    assert writing(at.run()).ids == [*before, chosen]


def test_what_the_settings_cut_is_struck_out_among_the_candidates(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(top_k="2")
    rows = strip(at, "candidates")["tokens"]
    assert [row[5] for row in rows] == [0, 0, 1, 1, 1, 1, 1, 1]
    assert rows[2][3] == "cut by top-k: never drawn"


def test_new_settings_keep_the_text_and_hold_from_the_next_token_on(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(temperature="1.5")
    before = writing(at).ids
    at.slider(key="temperature").set_value(0.0).run()
    assert writing(at).ids == before
    likeliest = int(logits_after(writing(at).generation.ids[0].tolist()).argmax())
    assert writing(press(at, "one token")).ids == [*before, likeliest]


@pytest.mark.parametrize("temperature", ["0", "0.01"])
def test_a_cold_text_is_the_likeliest_one(tiny_model: Callable[..., Path], temperature: str) -> None:
    tiny_model()
    at = page(temperature=temperature)
    assert writing(at).text == gptviz.load("tiny").generate(PROMPT, FIRST, temperature=0)
    assert np.isfinite([(one.taken.probability, one.taken.drawn_with) for one in writing(at).written]).all()


def test_top_k_beyond_the_vocabulary_keeps_all(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    assert gptviz.load("tiny").tokenizer.vocab_size < 100
    assert writing(page(top_k="100", temperature="1.3")).ids == writing(page(temperature="1.3")).ids


def test_an_empty_prompt_falls_back_to_the_default_one(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    at.text_area(key="prompt").set_value("").run()
    assert not at.exception
    assert any("prompt is empty" in info.value for info in at.info)
    assert len(writing(at).written) == FIRST


def test_an_emoji_is_read_as_the_stand_in_and_said_so(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(prompt="the 🦊")
    assert any("🦊" in warning.value for warning in at.warning)
    assert [chip[0] for chip in strip(at, "text")["tokens"][:5]] == ["t", "h", "e", "␣", "␣"]


def test_a_prompt_beyond_the_context_goes_on_from_its_end(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    long = "the quick brown fox jumps over"
    at = page(prompt=long, temperature="0")
    assert writing(at).text == gptviz.load("tiny").generate(long, FIRST, temperature=0)
    assert len(strip(at, "text")["tokens"]) == 8 + FIRST, "of the prompt, what the model sees"


def test_another_prompt_or_model_starts_anew_and_says_so(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    tiny_model("other", seed=5)
    at = page()
    before = writing(at)
    assert not at.toast
    at.text_area(key="prompt").set_value("dog").run()
    assert writing(at) is not before
    assert "anew" in at.toast[0].value
    assert writing(at).text == gptviz.load("tiny").generate("dog", FIRST, temperature=0.8)
    at.selectbox(key="model").set_value("other").run()
    assert writing(at).text == gptviz.load("other").generate("dog", FIRST, temperature=0.8)


def test_a_text_has_an_end(tiny_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model()
    monkeypatch.setattr(generate, "MOST_TOKENS", FIRST + 2)
    at = press(page(speed="Fast"), "play")
    for _ in range(3):
        writing(at)._ticked -= 1
        at.run()
    assert len(writing(at).written) == FIRST + 2
    assert not writing(at).playing
    assert at.button(key="one token").disabled
    assert at.button(key="play").disabled
    assert any("the most this page keeps" in info.value for info in at.info)
    writing(at).step()
    assert len(writing(at).written) == FIRST + 2
    press(at, "undo")
    assert not at.button(key="one token").disabled


@pytest.mark.parametrize(
    "query",
    [
        {"temperature": "nan", "top_k": "-1", "top_p": "0", "seed": "1e999", "speed": "warp"},
        {"temperature": "<script>", "top_k": "९९९", "top_p": "∞", "seed": "", "speed": ""},
        {"temperature": "-5", "top_k": "101", "top_p": "2", "seed": "100", "speed": "../.."},
    ],
)
def test_hostile_links_open_on_the_defaults(tiny_model: Callable[..., Path], query: dict[str, str]) -> None:
    tiny_model()
    at = page(**query)
    assert len(writing(at).written) == FIRST
    sampling = writing(at).generation.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed) == (0.8, None, None, 0)


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_code_shown_writes_the_same_text(tiny_model: Callable[..., Path], by_hand: bool) -> None:
    tiny_model()
    at = page(temperature="1.2", top_k="5", top_p="0.9", seed="7")
    if by_hand:
        writing(at).take(3, at=2)
        writing(at).step()
        at.run()
    (code,) = [one.value for one in at.code if "gptviz.load" in one.value]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    if not by_hand:
        assert printed.getvalue() == writing(at).text + "\n"
    else:
        probabilities = [float(line.rsplit(" ", 1)[1]) for line in printed.getvalue().splitlines() if line.strip()]
        assert probabilities == pytest.approx([one.taken.probability for one in writing(at).written], rel=1e-4)


def test_the_numbers_are_the_probabilities_in_the_model_and_in_the_draw(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    numbers = writing(page(temperature="0")).numbers()
    assert numbers.values.shape == (FIRST, 2)
    assert numbers.values[:, 1].tolist() == [1.0] * FIRST
    assert (numbers.values[:, 0] < 1).all()


def test_speed_is_the_models_time_and_not_the_readers(tiny_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model()
    now = writing(page())
    clock = [0.0]
    monkeypatch.setattr(generate, "perf_counter", lambda: clock[0])
    forward = now.generation._forward

    def a_hundredth_of_a_second() -> torch.Tensor:
        clock[0] += 0.01
        return forward()

    monkeypatch.setattr(now.generation, "_forward", a_hundredth_of_a_second)
    now._durations.clear()
    now.undo()
    for _ in range(5):
        now.step()
        clock[0] += 60  # the reader thinks
        assert now.candidates
    assert now.tokens_per_second == pytest.approx(100)


def test_a_step_keeps_a_handful_of_a_large_vocabulary(tiny_model: Callable[..., Path]) -> None:
    tiny_model(text="".join(map(chr, range(0x100, 0x100 + 50_257))), d_model=2, n_head=1, n_layer=1, d_mlp=2)
    at = page(prompt="ĀāĂ")
    written = writing(at).written
    assert len(written) == FIRST
    assert all(len(one.candidates) == len(one.chip.alternatives) == 8 for one in written)


def test_no_text_of_a_model_becomes_markdown(tiny_model: Callable[..., Path]) -> None:
    tiny_model(text="**:red[x]$`<b>")
    at = page(prompt="**:red[x]**")
    writing(at).pick(len(writing(at).prompt) + 1)
    at.run()
    assert any(text.value == f"Token 2: instead of {writing(at).written[1].taken.label}" for text in at.text)
    spoken = [element.value for kind in (at.markdown, at.caption, at.info) for element in kind]
    assert not any(writing(at).text[:4] in value or ":red[" in value for value in spoken)
