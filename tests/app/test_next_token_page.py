"""The Next token page as a reader meets it, without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import brief, percent
from gptviz.generate.sampling import uniform
from gptviz.interp.changing.before_after import rounding
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.reading import next_token as interp
from gptviz.language_model import LanguageModel
from gptviz.machine.hosting import variable
from gptviz.model import packed
from gptviz.model.raw_blocks import multiplies
from gptviz.runs import checkpoints
from gptviz.runs.imports import import_model
from gptviz.text import CharTokenizer, SymbolTokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.ui.pages.next_token import ledger
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.views.append_token import prompt_with
from tests.app.opening import opened, page_at, payload, says, strip
from tests.test_models_stay import at_its_bits
from tests.tiny import TinyModel, scrambled, tiny

PROMPT = "the fox"


pytestmark = pytest.mark.usefixtures("tiny_saved")
page = page_at("pages/next_token.py", model="tiny", prompt=PROMPT)


def logits(text: str = PROMPT) -> torch.Tensor:
    lm = gptviz.load("tiny")
    return lm.model(lm.encode(text)[None])[0].detach().double()


def chosen(at: AppTest) -> int:
    return int(strip(at)["settings"]["selected"])


def test_the_logits_of_any_position_reach_the_browser_as_the_model_gave_them_and_the_link_has_it() -> (
    None
):
    expected = logits()
    tokenizer = gptviz.load("tiny").tokenizer
    at = page(position="2")
    first, arrays = payload(at, "ledger")
    assert json.loads(arrays["labels"].tobytes()) == tokenizer.labels()
    for position in (2, *range(len(PROMPT))):
        if position != chosen(at):
            at.slider(key="position slider").set_value(position).run()
        assert chosen(at) == position
        assert at.query_params.get("position") == (
            None if position == len(PROMPT) - 1 else str(position)
        )
        header, arrays = payload(at, "ledger")
        np.testing.assert_allclose(arrays["logits"], expected[position], atol=1e-5)
        assert header["vocabulary"] == first["vocabulary"], "whose labels the browser has"
        last = position == len(PROMPT) - 1
        assert header["true"] == (None if last else tokenizer.id_of(PROMPT[position + 1]))


def test_unused_tokens_show_the_models_probability_and_are_said_to_be_never_drawn(
    home: Path,
) -> None:
    tokenizer = PaddedTokenizer(CharTokenizer("the fox"), 20)
    n = len(tokenizer.unused_ids)
    checkpoints.save("tiny", scrambled(tiny(vocab_size=20)), tokenizer, {}, replace=True)
    header, arrays = payload(page(), "ledger")
    np.testing.assert_allclose(arrays["logits"], logits()[-1], atol=1e-5)
    assert header["used"] == 20 - n
    lm = gptviz.load("tiny")
    assert "ledger(logits, sampling, lm.tokenizer.unused_ids)" in "".join(header["code"])
    assert len(lm.generate("the", 200, go_on=True)) == 200, (
        "an unused token would have no character"
    )
    at = opened("pages/generate.py", model="tiny", prompt="the")
    tree = at.session_state["writing"].tree
    assert max(node.token for node in tree.nodes.values()) < 20 - n
    assert all(ghost.token < 20 - n for ghost in at.session_state["picture"].ghosts())
    assert f"{n} unused tokens of the vocabulary never drawn" in payload(at, "tree")[0]["status"]


def test_the_random_numbers_are_those_that_decide_on_generate(tiny_model: TinyModel) -> None:
    tiny_model(context_length=4)
    # The window has slid by three: the place after its third token is the sixth of the text.
    header, arrays = payload(page(position="2"), "ledger")
    assert arrays["numbers"].tolist() == [uniform(seed, 6).item() for seed in range(100)]
    assert "Generate" not in header["note"], (
        "there the model would have seen more than the window holds here"
    )
    header, arrays = payload(page(), "ledger")
    assert arrays["numbers"].tolist() == [uniform(seed, len(PROMPT)).item() for seed in range(100)]
    assert "Generate" in header["note"]


def test_a_model_that_looked_ahead_promises_nothing_of_generate(tiny_model: TinyModel) -> None:
    tiny_model(mask="full")
    assert "Generate" not in payload(page(position="2"), "ledger")[0]["note"]
    assert "Generate" in payload(page(), "ledger")[0]["note"]


@pytest.mark.parametrize("position", ["", "-1"])
def test_no_position_and_minus_one_are_the_last(position: str) -> None:
    at = page(position=position)
    assert chosen(at) == len(PROMPT) - 1
    assert not at.warning
    assert "position" not in at.query_params


def test_another_text_keeps_a_position_it_has_and_else_shows_its_last() -> None:
    at = page(position="4")
    at.text_area(key="prompt").set_value("a lazy").run()
    assert chosen(at) == 4
    at.text_area(key="prompt").set_value("dog").run()
    assert chosen(at) == 2


def test_a_text_of_one_token_has_one_position() -> None:
    at = page(prompt="t")
    assert chosen(at) == 0
    assert not [slider for slider in at.slider if slider.key == "position slider"]
    assert "try An open question" not in [button.key for button in at.button], (
        "no place is the least sure"
    )


def test_the_model_reads_a_text_once_for_all_its_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    compute = interp.guesses
    monkeypatch.setattr(interp, "guesses", lambda *given: runs.append(given) or compute(*given))
    at = page()
    at.slider(key="position slider").set_value(1).run()
    at.button(key="try Cut the tail").click().run()
    at.button(key="try An open question").click().run()
    assert len(runs) == 1


def test_the_chips_tell_how_likely_the_model_found_each_token() -> None:
    chips = strip(page())["tokens"]
    ids = gptviz.load("tiny").encode(PROMPT).tolist()
    p = torch.softmax(logits(), -1)
    assert chips[0][1] is None
    assert [chip[1] for chip in chips[1:]] == pytest.approx(
        [p[i, ids[i + 1]].item() for i in range(len(ids) - 1)], rel=1e-3
    )


@pytest.mark.parametrize("size", [50_257, 262_144])
def test_a_large_vocabulary_is_guessed_at_every_place_without_the_logits_of_all(
    home: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    tokenizer = PaddedTokenizer(CharTokenizer("".join(map(chr, range(0x100, 0x2100)))), size)
    config = tiny(vocab_size=size, context_length=1024, d_model=8, n_head=2, n_layer=1, d_mlp=2)
    checkpoints.save("tiny", scrambled(config), tokenizer, {}, replace=True)
    shapes = []
    compute = interp.logits_at

    def watched(*given: Any) -> Any:
        found = compute(*given)
        shapes.append(found.shape)
        return found

    monkeypatch.setattr(interp, "logits_at", watched)
    at = page(prompt="ĀāĂ" * 40, position="100")
    assert chosen(at) == 100
    assert sum(rows for rows, _ in shapes) == 120
    assert max(rows for rows, _ in shapes) * size <= interp.MOST_LOGITS
    assert payload(at, "ledger")[1]["logits"].shape == (size,)
    assert all(chip[1] is not None for chip in strip(at)["tokens"][1:])
    at.run()
    assert sum(rows for rows, _ in shapes) == 120


def notices(at: AppTest) -> list[str]:
    """The sentences below the page's suggestions."""
    return [caption.value.replace("\\", "") for caption in at.caption]


def test_each_try_this_says_what_the_model_computed_and_shows_it(tiny_model: TinyModel) -> None:
    tiny_model(context_length=100)
    shares = torch.softmax(logits(), -1)
    label = gptviz.load("tiny").tokenizer.label
    most = shares.max(-1)
    place = int(most.values.argmin())
    at = page(position="2")
    said = (
        f"its likeliest token, “{label(int(most.indices[place]))}”, has "
        f"{100 * most.values[place]:.1f} %"
    )
    assert any(said in notice for notice in notices(at)), notices(at)
    at.button(key="try An open question").click().run()
    assert (at.text_area(key="prompt").value, chosen(at)) == (PROMPT, place)
    at.button(key="try back").click().run()
    assert (at.text_area(key="prompt").value, chosen(at)) == (PROMPT, 2)


def test_a_sentence_says_what_the_temperature_does_to_the_likeliest_token() -> None:
    at = page(position="2")
    exact = logits()[2]
    shares = [
        float(torch.softmax(exact / temperature, -1).max()) for temperature in (1.0, 0.5, 2.0)
    ]
    usual, sharp, flat = map(percent, shares)
    token = gptviz.load("tiny").tokenizer.label(int(exact.argmax()))
    (said,) = [
        one.value.replace("\\", "") for one in at.markdown if "move the temperature" in one.value
    ]
    assert f"**The likeliest token is “{token}”, with {usual}.**" in says(at)
    assert f"At temperature 0.5 it has {sharp}, at 2 it has {flat}:" in said


def test_try_this_asks_the_view_for_its_settings_and_numbers_each_click(
    tiny_model: TinyModel,
) -> None:
    tiny_model(context_length=100)
    at = page()
    assert payload(at, "ledger")[0]["number"] == 0
    at.button(key="try Cut the tail").click().run()
    first = payload(at, "ledger")[0]
    assert first["asked"] == {"temperature": 1.5, "top_k": 10, "top_p": 0.8}
    assert payload(at.run(), "ledger")[0]["number"] == first["number"] > 0, (
        "no new command without a click"
    )
    at.button(key="try An open question").click().run()
    second = payload(at, "ledger")[0]
    assert second["asked"] == {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    assert second["number"] != first["number"]


# Taking a token


def characters(text: str = "the fox") -> LanguageModel:
    tokenizer = CharTokenizer(text)
    return LanguageModel("tiny", scrambled(tiny(vocab_size=tokenizer.vocab_size)), tokenizer, {})


def test_of_characters_every_token_can_be_taken_and_reads_as_itself() -> None:
    lm = characters()
    ids = lm.tokenizer.encode("the").ids
    for token in range(lm.tokenizer.vocab_size):
        text = prompt_with(lm, ids, token)
        assert text == "the" + lm.tokenizer.piece(token)
        assert lm.tokenizer.encode(text).ids == [*ids, token]


def test_a_text_with_what_the_vocabulary_lacks_stays_as_it_was_written() -> None:
    lm = characters()
    prompt = "the 🦊"
    ids = lm.tokenizer.encode(prompt).ids
    token = lm.tokenizer.id_of("f")
    assert token is not None
    assert prompt_with(lm, ids, token, prompt) == "the 🦊f"


def test_of_a_byte_pair_encoding_a_token_is_taken_only_where_it_stays_that_token() -> None:
    lm = gptviz.load("bpe")
    encode = lm.tokenizer.encode
    ids = encode("ROMEO:\nWhat is the").ids
    outcomes = set()
    for token in range(0, lm.tokenizer.vocab_size, 7):
        text = prompt_with(lm, ids, token)
        outcomes.add(text is not None)
        if text is None:
            assert encode("ROMEO:\nWhat is the" + lm.tokenizer.piece(token)).ids != [*ids, token]
        else:
            assert encode(text).ids == [*ids, token]
    assert outcomes == {True, False}, "some merge, some do not"


def test_a_piece_of_a_character_cannot_be_taken() -> None:
    lm = gptviz.load("bpe")
    partial = next(i for i in range(lm.tokenizer.vocab_size) if "\ufffd" in lm.tokenizer.piece(i))
    assert prompt_with(lm, lm.tokenizer.encode("the").ids, partial) is None


def test_symbols_are_taken_with_the_space_between_them() -> None:
    tokenizer = SymbolTokenizer(["one", "two", "three"])
    lm = LanguageModel("tiny", scrambled(tiny(vocab_size=3)), tokenizer, {})
    text = prompt_with(lm, [0, 1], 2)
    assert text is not None
    assert tokenizer.encode(text).ids == [0, 1, 2]


def test_a_prompt_longer_than_the_page_reads_is_not_made() -> None:
    lm = characters()
    prompt = "t" * longest_prompt()
    ids = lm.tokenizer.encode(prompt).ids
    assert prompt_with(lm, ids, 0, prompt) is None
    assert prompt_with(lm, ids[:-1], 0, prompt) is not None


def clicking(monkeypatch: pytest.MonkeyPatch, token: int) -> None:
    """Give the page a button that does what a click on that token does."""
    show = ledger.sampling_ledger

    def clicked(payload: Any, *, key: str, on_take: Callable[[int], None]) -> None:
        show(payload, key=key, on_take=on_take)
        st.button("click", on_click=lambda: on_take(token), key="click")

    monkeypatch.setattr(ledger, "sampling_ledger", clicked)


def test_a_token_taken_at_an_earlier_place_ends_the_prompt_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = gptviz.load("tiny").tokenizer.id_of("z")
    assert token is not None
    clicking(monkeypatch, token)
    at = page(position="2")
    at.button(key="click").click().run()
    assert at.text_area(key="prompt").value == "thez"
    assert chosen(at) == 3
    assert "position" not in at.query_params


def test_a_token_that_cannot_be_taken_changes_nothing_and_the_page_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = gptviz.load("bpe")
    partial = next(i for i in range(lm.tokenizer.vocab_size) if "\ufffd" in lm.tokenizer.piece(i))
    clicking(monkeypatch, partial)
    at = opened("pages/next_token.py", model="bpe", prompt="the")
    at.button(key="click").click().run()
    assert at.text_area(key="prompt").value == "the"
    assert any("was not taken" in info.value for info in at.info)
    assert any("generate" in str(link.proto) for link in at.get("page_link"))
    assert not any("was not taken" in info.value for info in at.run().info), "said once"


@pytest.mark.parametrize("model", ["addition", "reversal"])
def test_where_a_right_answer_would_look_wrong_the_page_says_how_it_is_written(model: str) -> None:
    said = says(opened("pages/next_token.py", model=model))
    assert ("Ones first" in said) == (model == "addition")


@pytest.mark.parametrize("fast", ["0", "1"])
def test_it_says_how_weights_of_few_bits_are_multiplied_and_how_far_that_moves_the_guess(
    fast: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable("fast"), fast)
    monkeypatch.setattr(packed, "_library_is_faster", lambda _: (True, True))
    if fast == "1" and not multiplies("Q8_0"):
        pytest.skip("gptviz[fast] is not installed")
    lm = at_its_bits(tmp_path)
    exact = gptviz.load(tmp_path / "bits.gguf", precision="float32")
    import_model(str(tmp_path / "bits.gguf"), f"bits-{fast}")
    said = says(opened("pages/next_token.py", model=f"bits-{fast}", prompt=PROMPT))
    by = "8 bits by ik_llama.cpp (GPTVIZ_FAST=0: in bfloat16)" if fast == "1" else "bfloat16"
    assert f"Weights: Q8_0, multiplied in {by}. With exact products" in said
    with torch.inference_mode():
        found, expected = (
            each.model(each.encode(PROMPT)[None])[0, -1].double() for each in (lm, exact)
        )
    divergence = (expected.softmax(-1) * (expected.log_softmax(-1) - found.log_softmax(-1))).sum()
    change, logit = rounding(lm.model, Inputs(lm.encode(PROMPT)[None]))
    assert change.divergence == pytest.approx(float(divergence), rel=0.1, abs=1e-7)
    assert logit == pytest.approx(float((found - expected).abs().max()), rel=0.02)
    assert f"differ by {brief(change.divergence)} nats" in said
    assert f"and a logit by {brief(logit)} at most" in said
