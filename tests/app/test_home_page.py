"""Home: the prompt, its tokens, the guess, and the way to every page."""

from __future__ import annotations

import weakref
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import torch

import gptviz
from gptviz.components.kit import unpack
from gptviz.components.model_map import TensorPage
from gptviz.figures.kit.format import percent
from gptviz.ui.pages.home.glance import shape_of
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import append_token, model_map, real_model
from gptviz.ui.views.read import PromptRead
from gptviz.ui.widgets import escape_markdown
from tests.app.opening import page_at, says, views
from tests.tiny import TinyModel, tiny

ALPHABET = "".join(sorted(set(DEFAULT_PROMPT + "abcdefghijklmnopqrstuvwxyz\n ")))


opened = page_at("app.py")


def test_home_opens_on_words_says_the_guess_above_the_map_and_leads_to_the_pages_that_show_what_stands_out() -> (
    None
):
    app = opened()
    lm = gptviz.load("sentences")
    prompt = app.text_area(key="prompt").value
    guess = lm.model(lm.encode(prompt)[None])[0, -1].softmax(-1)
    assert (app.selectbox(key="model").value, lm.tokenizer.label(int(guess.argmax()))) == (
        "sentences",
        "Mary",
    )
    guessed = f"guesses “Mary” next ({percent(float(guess.max()))})."
    assert f"The model cuts the text into 14 tokens, reads them in 3 blocks, and {guessed}" in says(
        app
    )
    assert "next token" in app.title[0].value
    labels = [link.proto.label for link in app.main.get("page_link")]
    assert {"Classify", "Translate"} <= set(labels)
    linked = [parse_qs(link.proto.query_string) for link in app.main.get("page_link")]
    for finding in lm.scan(prompt)[:4]:
        assert escape_markdown(finding.sentence) in [one.value for one in app.markdown]
        assert any(
            {key: [value] for key, value in finding.query}.items() <= query.items()
            for query in linked
        ), finding


def test_the_first_thing_to_look_at_is_about_the_block_that_is_open() -> None:
    app = opened()
    lm = gptviz.load("sentences")
    prompt = app.text_area(key="prompt").value
    ids = tuple(lm.encode(prompt).tolist())
    block = model_map.block_for_guess(model_key("sentences", "cpu"), PromptRead(ids))
    findings = {escape_markdown(one.sentence): one for one in lm.scan(prompt)[:4]}
    first = next(one.value for one in app.markdown if one.value in findings)
    assert any(f"blocks.{block}." in value for _, value in findings[first].query)


def test_the_block_that_is_open_at_first_is_the_one_that_patching_finds() -> None:
    lm = gptviz.load("sentences")
    clean = "When Mary and John went to the shop, John gave a book to"
    corrupted = "When Mary and John went to the shop, Mary gave a book to"
    found = lm.patch(clean, corrupted, what="attention.out").shares
    block = model_map.block_for_guess(
        model_key("sentences", "cpu"), PromptRead(tuple(lm.encode(clean).tolist()))
    )
    assert block == int(found[:, -1].argmax())


def test_where_no_real_model_is_here_one_is_fetched_with_a_click_and_else_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(real_model.import_job, "begin", begun.append)
    app = opened()
    assert real_model.SIZE in app.button(key="fetch the real model").label
    app.button(key="fetch the real model").click().run()
    assert begun == [real_model.ON_HUB]
    monkeypatch.setattr(real_model, "opened_last", lambda: "shakespeare")
    (link,) = (
        link for link in opened().main.get("page_link") if link.proto.label == "Open shakespeare"
    )
    assert parse_qs(link.proto.query_string)["prompt"] == [real_model.PROMPT]


def test_a_prompt_with_words_that_the_model_lacks_is_read_by_the_one_that_knows_them_with_a_click() -> (
    None
):
    app = opened(model="sentences", prompt="O Romeo, Romeo")
    app.button(key="open a reader").click().run()
    assert app.selectbox(key="model").value == "shakespeare"
    assert app.text_area(key="prompt").value == "O Romeo, Romeo"
    assert not app.warning
    assert "open a reader" not in [
        button.key for button in opened(model="sentences", prompt="€").button
    ], "no model here knows it"


def test_the_map_is_the_first_thing_on_home_and_shows_the_tokens_and_the_guesses(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text=ALPHABET)
    app = opened(model="mine", prompt="hello")
    (drawn,) = (view for view in views(app) if view.proto.bytes)
    header, arrays = unpack(drawn.proto.bytes)
    assert [label for label, _ in header["tokens"]] == list("hello")
    lm = gptviz.load("mine")
    ids = lm.encode("hello")
    shares = lm.model(ids[None])[0].softmax(-1)
    of_next = [shares[place, token].item() for place, token in enumerate(ids[1:])]
    assert [p for _, p in header["tokens"]] == [
        None,
        *(pytest.approx(p, abs=1e-6) for p in of_next),
    ]
    probability, order = shares[-1].sort(descending=True)
    assert [label for label, _ in header["guesses"]] == [
        lm.tokenizer.label(int(i)) for i in order[: len(header["guesses"])]
    ]
    assert [p for _, p in header["guesses"]] == pytest.approx(
        probability[: len(header["guesses"])].tolist(), abs=1e-6
    )
    assert header["takes"]
    assert arrays["decoder"].shape == (2, 3, 5, 5)


def test_the_thumbnails_of_the_map_are_made_block_by_block(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(text=DEFAULT_PROMPT, context_length=64, n_layer=5, n_head=3)
    made = model_map.view.thumbnails
    seen = []
    alive = []

    def counted(
        patterns: np.ndarray, hidden: np.ndarray | None, whole: tuple[int, int] | None
    ) -> np.ndarray:
        seen.append(weakref.ref(patterns))
        alive.append(sum(ref() is not None for ref in seen))
        return made(patterns, hidden, whole)

    monkeypatch.setattr(model_map.view, "thumbnails", counted)
    app = opened(model="tiny", prompt="How now")
    assert (len(alive), max(alive)) == (5, 1), (
        "the patterns of all blocks over a long text take gigabytes"
    )
    (drawn,) = (view for view in views(app) if view.proto.bytes)
    _, arrays = unpack(drawn.proto.bytes)
    trace = gptviz.load("tiny").trace("How now", ["*.pattern"])
    for block in range(5):
        shares = trace[f"blocks.{block}.attention.pattern"][0].numpy()
        visible = np.tril(np.ones((7, 7), bool))
        np.testing.assert_array_equal(
            arrays["decoder"][block], np.where(visible, np.rint(250 * shares), 255)
        )


def test_from_the_box_that_was_opened_a_link_leads_to_the_page_about_it(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text=ALPHABET)
    app = opened(model="mine", prompt="hello")
    for look, title, asked in (
        (
            TensorPage("blocks.1.attention.pattern", 0, (2, 0, 0)),
            "Attention",
            {"block": ["1"], "head": ["2"]},
        ),
        (TensorPage("blocks.1.attention.mask", 0, ()), "Attention", {"block": ["1"]}),
        (TensorPage("embed", 0, (0, 0)), "Embeddings", {}),
        (TensorPage("logits", 0, (0, 0)), "Next token", {}),
    ):
        app.session_state["map look"] = look
        app.run()
        (way,) = (
            link
            for link in app.main.get("page_link")
            if link.proto.label.endswith(f"see it on the page {title}")
        )
        assert parse_qs(way.proto.query_string) == {"model": ["mine"], "prompt": ["hello"]} | asked
        app.session_state["map shut"] = True
        app.run()
        assert not [
            link for link in app.main.get("page_link") if "see it on the page" in link.proto.label
        ]
        app.session_state["map shut"] = False
    for elsewhere in (
        TensorPage("blocks.7.attention.q", 0, (0,)),
        TensorPage("blocks.0.mlp.up", 0, ()),
    ):
        app.session_state["map look"] = elsewhere
        app.run()
        assert not [
            link for link in app.main.get("page_link") if "see it on the page" in link.proto.label
        ]


def test_what_is_open_on_the_map_can_be_switched_off_and_brought_back(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text=ALPHABET, n_kv_head=1, positions="rotary")
    app = opened(model="mine", prompt="hello")
    for look, unit in (
        (TensorPage("blocks.1.attention.pattern", 0, (2, 0, 0)), "blocks.1.attention.head.2"),
        (TensorPage("blocks.1.attention.out", 0, (0, 0)), "blocks.1.attention"),
        (TensorPage("blocks.0.mlp.neurons", 0, (0, 0)), "blocks.0.mlp"),
        (TensorPage("blocks.0.attention.positions", 0, ()), "positions"),
        (TensorPage("embed", 0, (0, 0)), "embed"),
    ):
        app.session_state["map look"] = look
        app.run()
        app.button(key="switch what is open").click().run()
        assert app.query_params["edits"] == unit
        app.button(key="switch what is open").click().run()
        assert "edits" not in app.query_params
    app.session_state["map look"] = TensorPage("logits", 0, (0, 0))
    assert "switch what is open" not in {button.key for button in app.run().button}


def test_a_guess_that_no_text_ends_in_is_refused_and_leads_to_generate(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text=ALPHABET)
    app = opened(model="mine", prompt="hello")
    app.session_state[append_token.REFUSED] = "x"
    app.run()
    assert any("“x” was not taken" in message.value for message in app.info)
    assert "Take it on Generate" in {link.proto.label for link in app.main.get("page_link")}


def test_an_unknown_model_in_the_link_is_named_and_another_shown(tiny_model: TinyModel) -> None:
    tiny_model("mine", text=ALPHABET)
    app = opened(model="../../etc/passwd")
    assert any(escape_markdown("../../etc/passwd") in warning.value for warning in app.warning)
    assert app.selectbox(key="model").value in app.selectbox(key="model").options


def test_a_model_without_files_is_not_offered_and_none_at_all_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gptviz.runs import checkpoints

    monkeypatch.setattr(checkpoints, "BUNDLED", home / "none")
    app = opened()
    assert "no model" in app.error[0].value


def test_a_model_trained_again_is_read_again(tiny_model: TinyModel) -> None:
    from gptviz.ui.shell.subject.models import language_model, model_key

    tiny_model("mine", text=ALPHABET, seed=1)
    before = language_model(model_key("mine", "cpu")).model.embed.weight.clone()
    folder = tiny_model("mine", text=ALPHABET, seed=2)
    assert not torch.equal(language_model(model_key("mine", "cpu")).model.embed.weight, before)
    assert folder.name == "mine"


def test_the_size_names_key_heads_and_windows_where_a_model_has_them() -> None:
    assert "2 blocks of 3 heads," in shape_of(tiny())
    assert "2 blocks of 4 heads over 2 key heads," in shape_of(tiny(n_head=4, n_kv_head=2))
    assert "over 1 key head," in shape_of(tiny(n_kv_head=1))
    assert "6 blocks of 3 heads, 4 of them with a window of 5 tokens" in shape_of(
        tiny(n_layer=6, window=5, window_pattern="wwf")
    )
    assert "each with a window of 5 tokens" in shape_of(tiny(window=5, window_pattern="w"))
