"""The Attention page as a reader meets it, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.ui.pages.attention import tries
from gptviz.ui.shell import frame
from gptviz.ui.views import attention
from tests.app.explorer import pattern, sent
from tests.app.opening import opened, page_at, ran, views
from tests.tiny import TinyModel


@pytest.fixture
def seed_sized(tiny_model: TinyModel) -> Path:
    """As many blocks, heads and positions as the seed's model has."""
    return tiny_model(
        text=frame.DEFAULT_PROMPT,
        context_length=64,
        n_layer=3,
        n_head=4,
        card={"preset": "generator"},
    )


page = page_at("pages/attention.py", model="tiny")


def asked(at: AppTest) -> dict[str, Any]:
    """The last command to the view."""
    return dict(sent(at)[0]["asked"])


def expected(prompt: str, block: int, head: int) -> np.ndarray:
    values = (
        gptviz.load("tiny")
        .trace(prompt)[f"blocks.{block}.attention.pattern"][0, head]
        .numpy()
        .copy()
    )
    values[np.triu_indices(len(values), 1)] = np.nan
    return values


def test_the_page_opens_on_the_head_that_adds_most_of_those_that_clearly_read_one_token(
    seed_sized: Path,
) -> None:
    at = page(prompt="How now")
    last = np.array([[expected("How now", b, h)[-1, 1:-1] for h in range(4)] for b in range(3)])
    lm = gptviz.load("tiny")
    guess, other = np.argsort(-lm.trace("How now")["logits"][0, -1].numpy())[:2].tolist()
    parts = lm.attribute("How now", guess, against=other).parts
    added = {part.name: part.value for part in parts}
    clear = [place for place in np.ndindex(3, 4) if last[place].max() >= 0.5]
    block, head = (
        max(clear, key=lambda place: added["blocks.{}.attention.head.{}".format(*place)])
        if clear
        else np.unravel_index(last.max(-1).argmax(), (3, 4))
    )
    key = last[block, head].argmax()
    assert sent(at)[0]["start"] == {"block": block, "head": head}
    # of two equal tokens it is said which
    before = "How now"[: key + 2]
    letter = f"“{before[-1].replace(' ', '␣')}”"
    if "How now".count(before[-1]) > 1:
        letter = f"the {'1st' if before.count(before[-1]) == 1 else '2nd'} {letter}"
    said = (
        f"At the 2nd “w”, head {head} of block {block} reads {letter} "
        f"most: {percent(last[block, head].max())} of its attention."
    )
    assert said in " ".join(one.value for one in at.markdown)
    assert not at.warning
    other = page(prompt="How now", block="2", head="3")
    assert "At the 2nd “w”, head 3 of block 2 reads" in " ".join(
        one.value for one in other.markdown
    )


def test_what_the_browser_keeps_in_the_address_changes_nothing_that_is_sent(
    seed_sized: Path,
) -> None:
    plain = page()
    chosen = page(block="1", head="0", show="value", query="3", log="true", heads="all")
    assert sent(plain)[0] == sent(chosen)[0]
    assert views(plain)[0].proto.bytes == views(chosen)[0].proto.bytes


def test_a_prompt_longer_than_the_context_shows_its_end(seed_sized: Path) -> None:
    text = (frame.DEFAULT_PROMPT * 7)[:300]
    at = page(prompt=text)
    assert any("300" in info.value and "64" in info.value for info in at.info)
    np.testing.assert_allclose(pattern(at, 2, 2), expected(text[-64:], 2, 2), atol=1e-6)


def test_try_this_says_how_much_the_heads_it_names_do_and_asks_the_view_for_them(
    seed_sized: Path,
) -> None:
    at = page(prompt="How now")
    assert sent(at)[0]["asked"] is None
    seen = [np.stack([expected("How now", block, head) for head in range(4)]) for block in range(3)]
    shares = np.array(
        [[np.mean([head[i, i - 1] for i in range(1, 7)]) for head in block] for block in seen]
    )
    assert any(
        f"with {100 * shares.max():.1f} % on average" in caption.value for caption in at.caption
    )
    at.button(key="try The token before").click().run()
    assert (asked(at)["block"], asked(at)["head"]) == np.unravel_index(
        shares.argmax(), shares.shape
    )
    at.button(key="try A published picture").click().run()
    assert (asked(at)["block"], asked(at)["head"], asked(at)["query"]) == (2, 2, None)
    np.testing.assert_allclose(pattern(at, 2, 2), expected(frame.DEFAULT_PROMPT, 2, 2), atol=1e-6)


@pytest.mark.parametrize(
    ("n_layer", "n_head", "preset"), [(2, 4, "generator"), (3, 2, "generator"), (3, 4, "")]
)
def test_the_seeds_picture_is_offered_where_the_model_has_its_head(
    tiny_model: TinyModel, n_layer: int, n_head: int, preset: str
) -> None:
    tiny_model(
        text=frame.DEFAULT_PROMPT,
        context_length=64,
        n_layer=n_layer,
        n_head=n_head,
        card={"preset": preset},
    )
    assert "try A published picture" not in [button.key for button in page().button]


@pytest.mark.parametrize("tokens", [3, 40])
def test_the_code_computes_the_numbers_that_are_sent(seed_sized: Path, tokens: int) -> None:
    prompt = ("How now, 'my love'?\n" * 9)[:tokens]
    at = page(prompt=prompt)
    header, arrays = sent(at)
    made = ran(header["code"])
    for block in range(3):
        np.testing.assert_allclose(
            made["reading"].pattern(block, 1), pattern(at, block, 1), atol=1e-6
        )
        rollout = made["reading"].rollout(block)[np.tril_indices(tokens)]
        np.testing.assert_allclose(rollout, arrays["rollout"][block], atol=1e-6)
        weighted = pattern(at, block, 1) * arrays["moved"][block, 1]
        np.testing.assert_allclose(made["reading"].value_weighted(block, 1), weighted, atol=1e-6)


def test_a_block_that_was_not_sent_is_sent_when_the_view_asks_for_it_and_read_by_the_code(
    seed_sized: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention.attention_explorer, "MOST_BYTES", 1)
    at = page(prompt="How now")
    header, _ = sent(at)
    start = header["start"]["block"]
    assert (header["first"], header["count"]) == (start, 1)
    other = (start + 1) % 3
    at.session_state["explorer block"] = (header["of"], other)
    at.run()
    header, arrays = sent(at)
    reading = ran(header["code"])["reading"]
    assert header["first"] == other
    np.testing.assert_allclose(pattern(at, other, 3), expected("How now", other, 3), atol=1e-6)
    np.testing.assert_allclose(reading.pattern(other, 3), pattern(at, other, 3), atol=1e-6)
    np.testing.assert_allclose(
        reading.rollout(other)[np.tril_indices(7)], arrays["rollout"][0], atol=1e-6
    )
    np.testing.assert_array_equal(reading.q[0], arrays["q"][0])
    at.text_area(key="prompt").set_value("How not").run()
    header, _ = sent(at)
    assert header["first"] == header["start"]["block"], "another text begins at its default"


def test_of_a_text_too_long_for_the_explorer_the_end_is_read_and_the_page_says_so(
    seed_sized: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = gptviz.load("tiny").model.config
    monkeypatch.setattr(
        attention,
        "MOST_OF_BLOCK",
        2 * attention._size(config, 9, 9, triangle=True, of_itself=True).numbers,
    )
    assert attention.most_tokens(config) == 9
    at = page(prompt="How now, my love?")
    assert [label.replace("␣", " ") for label in sent(at)[0]["keys"]] == list(" my love?")
    assert "reads the last 9 tokens" in at.info[0].value
    np.testing.assert_allclose(pattern(at, 1, 1), expected(" my love?", 1, 1), atol=1e-6)
    made = ran(sent(at)[0]["code"])
    np.testing.assert_allclose(made["reading"].pattern(1, 1), pattern(at, 1, 1), atol=1e-6)


def test_a_head_that_repeats_what_came_next_before_is_found_in_any_model() -> None:
    at = opened("pages/attention.py", model="induction")
    at.button(key="try What came next before").click().run()
    command, (header, arrays) = asked(at), sent(at)
    followed = arrays["fact followed"]
    assert (command["block"], command["head"]) == np.unravel_index(
        followed.argmax(), followed.shape
    )
    assert command["block"] == 1, (
        "an induction head needs a block before it that says what came before each token"
    )
    assert followed.max() > 0.5
    assert "followed" in header["facts"]


def test_leaving_out_the_first_token_is_offered_where_many_heads_rest_on_it(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(text=frame.DEFAULT_PROMPT, context_length=64)
    assert "try Without the first token" not in [button.key for button in page().button]
    monkeypatch.setattr(tries, "MANY_RESTING", -1.0)
    at = page()
    at.button(key="try Without the first token").click().run()
    assert asked(at)["show"] == "rest"
    assert sent(at)[1]["without first"].shape == sent(at)[1]["thumbnails"].shape


def test_what_edits_make_of_the_patterns_is_said_and_the_patterns_are_the_edited_ones(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model())
    texts = ("blocks.0.attention.head.1=uniform", "blocks.1.attention")
    at = opened("pages/attention.py", model="tiny", prompt="the fox", edits=",".join(texts))
    said = [caption.value for caption in at.caption]
    assert any(each.startswith("Head 1 of block 0 has its pattern from an edit") for each in said)
    assert any(each.startswith("Attention of block 1 is switched off") for each in said)
    header, arrays = sent(at)
    assert header["edited"] == {"0.1": texts[0], "1": texts[1]}
    corner = np.tril_indices(len("the fox"))
    wanted = lm.edited(*texts).trace("the fox")["blocks.0.attention.pattern"][0, 1].numpy()[corner]
    np.testing.assert_allclose(arrays["pattern"][0, 1], wanted, atol=1e-6)


def test_words_are_offered_where_they_are_split_and_are_sent_in_the_place_of_tokens(
    seed_sized: Path,
) -> None:
    assert not [switch for switch in page(prompt="a b").toggle if switch.key == "words"]
    at = page(prompt="How now", words="true")
    header, arrays = sent(at)
    assert header["queries"] == header["keys"] == ["How", "␣", "now"]
    tokens = np.nan_to_num(expected("How now", 1, 2))
    words = (slice(3), slice(3, 4), slice(4, 7))
    merged = [[tokens[query, key].sum() / len(tokens[query]) for key in words] for query in words]
    np.testing.assert_allclose(np.nan_to_num(pattern(at, 1, 2)), merged, atol=1e-6)
    assert "moved" not in arrays
    assert arrays["q"].shape[-1] == 0
