"""The Patching page as a reader meets it, without a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.changing import patching
from gptviz.interp.changing.attribution_patching import TRUSTED, Preview, preview
from gptviz.interp.changing.patching import Patched, PromptPair, patch
from gptviz.model import Transformer
from gptviz.text import CharTokenizer
from gptviz.text.datasets.sentences import contrasts
from gptviz.text.datasets.word_kinds import with_another_word
from gptviz.ui.pages.patching import maps
from gptviz.ui.pages.patching.maps import tries
from gptviz.ui.pages.patching.prompts import CORRUPTED, Prompts
from gptviz.ui.shell.subject.bar import default_prompt, read_prompt
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views.contrasts import suggest_contrast
from gptviz.ui.widgets import escape_markdown
from tests.app.opening import chart, charts, headings, opened, page_at, ran, says
from tests.drawn import numbers
from tests.tiny import TinyModel
from tests.waiting import PATIENCE

PAGE = "pages/patching.py"
TEXT = "abcdefghij "
NAMES = (*maps.BY_POSITION, *maps.BY_HEAD)


def heat_maps(at: AppTest) -> dict[str, dict[str, Any]]:
    """By title, what the heatmaps draw."""
    return {chart["layout"]["title"]["text"]: chart for chart in charts(at)}


def drawn(chart: dict[str, Any]) -> np.ndarray:
    return numbers(chart["data"][0]["z"])


@pytest.fixture
def lm(tiny_model: TinyModel) -> gptviz.LanguageModel:
    tiny_model("mine", text=TEXT)
    return gptviz.load("mine")


CLEAN = "bad abe"
OTHER = "bad cbe"


page = page_at(PAGE, model="mine", prompt=CLEAN, corrupted=OTHER)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model is too large for its patches to be computed at once."""
    monkeypatch.setattr(maps, "MUCH", 0)


def agreeing(found: dict[str, Preview], **correlations: float) -> dict[str, Preview]:
    """The previews with these correlations, and that of all others 0.95; a point in a name is a
    double underscore.
    """
    return {
        name: replace(one, correlation=correlations.get(name.replace(".", "__"), 0.95))
        for name, one in found.items()
    }


def test_of_a_small_model_every_heatmap_is_exact_at_once_and_no_preview_is_computed(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(maps, "previews")
    at = page()
    assert not at.warning
    assert not at.error
    assert len(heat_maps(at)) == len(NAMES) == 8
    for name in NAMES:
        expected = lm.patch(CLEAN, OTHER, what=name)
        chart = heat_maps(at)[expected.quantity.title]
        shares = expected.restored.values
        np.testing.assert_allclose(
            drawn(chart),
            shares[:, 4:] if name in maps.BY_POSITION else shares,
            rtol=1e-4,
            atol=1e-5,
        )
        assert (chart["data"][0]["zmin"], chart["data"][0]["zmax"]) == (-1, 1)
    assert "All heatmaps are exact" in says(at)
    assert "preview" not in " ".join(one.value for one in at.caption)
    assert not [button for button in at.button if button.label == maps.COMPUTE]
    assert "positions 0 to 3" in says(at)
    for tools in headings(at):
        assert f"Second text: “{OTHER}”" in tools["settings"]
    assert len(headings(at)) == 8


def test_on_the_page_as_it_opens_the_only_other_token_restores_all_of_the_answer() -> None:
    at = opened(PAGE)
    both = [at.text_area(key=key).value for key in ("prompt", CORRUPTED)]
    lm = gptviz.load(at.session_state["model"])
    pair = lm.pair(*both)
    (place,) = [
        i
        for i, (one, other) in enumerate(zip(pair.clean, pair.corrupted, strict=True))
        if one != other
    ]
    before = drawn(heat_maps(at)["Stream before a block"])
    assert before[0, place - pair.first_difference] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(
        before, lm.patch(*both).shares[:, pair.first_difference :], rtol=1e-3, atol=1e-3
    )


@pytest.mark.usefixtures("lm")
@pytest.mark.parametrize("model", ["mine", "sentences"])
def test_where_the_answer_is_on_its_way_is_said_as_the_map_of_the_stream_shows(model: str) -> None:
    at = page() if model == "mine" else opened(PAGE, model=model)
    both = [at.text_area(key=key).value for key in ("prompt", CORRUPTED)]
    lm = gptviz.load(model)
    shares = lm.patch(*both).shares
    told = [one.value for one in at.caption if one.value.startswith("The stream is all")]
    assert len(told) == all(max(row) >= 0.5 for row in shares.tolist())
    for sentence in told:
        said = sentence.replace("\\", "")
        before = -1
        for block, row in enumerate(shares.tolist()):
            place = row.index(max(row))
            token = lm.tokenizer.label(lm.pair(*both).clean[place])
            named = re.search(rf"“{re.escape(token)}” before block {block}\b", said)
            assert bool(named) == (place != before)
            before = place


@pytest.mark.usefixtures("lm")
@pytest.mark.parametrize("model", ["mine", "sentences", "shakespeare", "addition", "induction"])
def test_the_sentence_names_the_attention_that_moves_the_answer_else_the_part_that_restores_most(
    model: str,
) -> None:
    at = page() if model == "mine" else opened(PAGE, model=model)
    both = [at.text_area(key=key).value for key in ("prompt", CORRUPTED)]
    lm = gptviz.load(model)
    (said,) = (one.value for one in at.markdown if "piece of the first text" in one.value)
    stream = lm.patch(*both).shares
    where = stream.argmax(1).tolist()
    moves = [block for block in range(len(where) - 1) if where[block] != where[block + 1]]
    has = maps.shown_quantities(lm.model.config, maps.BY_POSITION[1:])
    outputs = {one.name: lm.patch(*both, what=one.name).shares for one in has}
    if moves and (stream.max(1) >= maps.CARRIES).all():
        share = outputs["attention.out"][moves[-1], where[-1]]
        assert f"the attention of block {moves[-1]} brings it to" in said
        assert said.startswith("**Up to" if len(moves) == 1 else "**Before")
    else:
        pair = lm.pair(*both)
        differ = [
            i
            for i, ids in enumerate(zip(pair.clean, pair.corrupted, strict=True))
            if len(set(ids)) > 1
        ]
        for one in outputs.values():
            one[0, differ] = -np.inf
        share = max(one.max() for one in outputs.values())
        assert ("No single part carries" in said) == (share < maps.CARRIES)
    assert ("only in part" in said) == (share < maps.CARRIES)
    if "by the preview" not in said:
        assert f"({maps.percents(float(share))})" in said


@pytest.mark.usefixtures("large")
def test_of_a_large_model_a_preview_that_disagrees_with_what_was_computed_is_not_drawn(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = preview(lm.model, lm.pair(CLEAN, OTHER), NAMES, checked=3)
    found = agreeing(
        found, attention__k=TRUSTED - 0.01, mlp__out=float("nan"), attention__z=TRUSTED
    )
    monkeypatch.setattr(maps, "previews", lambda _key, _pair: found)
    at = page()
    hidden = {"attention.k", "mlp.out"}
    assert set(heat_maps(at)) == {
        one.quantity.title for name, one in found.items() if name not in hidden
    }
    told = [one.value for one in at.info]
    assert len(told) == 2
    for name in hidden:
        assert any(
            one.startswith(f"**{found[name].quantity.title}** is not drawn")
            and found[name].agreement in one
            for one in told
        )
    captions = " ".join(one.value for one in at.caption)
    assert captions.count("preview: ") == len(NAMES) - len(hidden)
    assert all(
        f"preview: {one.agreement}" in captions for name, one in found.items() if name not in hidden
    )
    assert f"preview: correlation {TRUSTED:.2f} with 3 patches that were computed" in captions
    assert set(at.selectbox(key="of").options) == set(heat_maps(at)), (
        "there are no numbers of what is not drawn"
    )
    np.testing.assert_allclose(
        drawn(heat_maps(at)["Output (z)"]), found["attention.z"].shares, rtol=1e-4, atol=1e-5
    )


@pytest.mark.usefixtures("large")
def test_of_a_mixture_of_experts_the_page_says_that_previews_need_not_add_up(
    tiny_model: TinyModel,
) -> None:
    said = "a patch may make a router choose other experts"
    for name, kind in (("mine", "experts"), ("dense", "plain")):
        tiny_model(name, text=TEXT, mlp=kind)
        assert (said in says(page(model=name))) is (kind == "experts")


@pytest.mark.usefixtures("large")
def test_where_no_preview_is_to_be_trusted_the_page_says_so_and_can_compute_all(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = preview(lm.model, lm.pair(CLEAN, OTHER), NAMES, checked=0)
    monkeypatch.setattr(maps, "previews", lambda _key, _pair: found)
    at = page()
    shown = [name for name, one in found.items() if one.is_trusted]  # those of which all is known
    assert len(heat_maps(at)) == len(shown) < len(NAMES)
    assert at.button(key="compute patches")


def test_without_a_corrupted_prompt_one_token_is_changed_and_the_answer_with_it(
    lm: gptviz.LanguageModel,
) -> None:
    at = opened(PAGE, model="mine", prompt=CLEAN)
    other = at.text_area(key=CORRUPTED).value
    assert sum(a != b for a, b in zip(CLEAN, other, strict=True)) == 1
    pair = lm.pair(CLEAN, other)
    logits = lm.model(pair.ids(lm.device))[:, -1]
    assert logits.argmax(-1).tolist() == [pair.right, pair.wrong]
    # while nobody has typed another, it follows the prompt
    at.text_area(key="prompt").set_value("jig").run()
    assert len(at.text_area(key=CORRUPTED).value) == 3


@pytest.mark.usefixtures("large")
def test_what_is_computed_exactly_is_there_after_a_reload(lm: gptviz.LanguageModel) -> None:
    at = page()
    at.button(key="compute patches").click().run()
    pair = lm.pair(CLEAN, OTHER)
    work = maps.exact_map(model_key("mine", "cpu"), pair)
    assert work is not None
    work.wait()
    assert (work.state, work.progress.done) == ("done", work.progress.of)
    again = page()
    assert "All heatmaps are exact" in says(again)
    assert not [button for button in again.button if button.label == "Compute exactly"]
    for name in NAMES:
        exact = lm.patch(CLEAN, OTHER, what=name)
        shares = exact.restored.values[:, 4:] if name in maps.BY_POSITION else exact.restored.values
        np.testing.assert_allclose(
            drawn(heat_maps(again)[exact.quantity.title]), shares, rtol=1e-4, atol=1e-5
        )


@pytest.mark.usefixtures("large")
def test_a_computation_that_ends_while_the_page_is_drawn_is_shown_whole(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = Event()

    def slow(model: Transformer, pair: PromptPair, what: str, **known: Any) -> Patched:
        assert drawing.wait(PATIENCE)
        return patch(model, pair, what, **known)

    def verdict(both: Prompts) -> None:
        """Stands between what the page reads of the computation and the place where it follows
        it.
        """
        if (work := maps.exact_map(model_key("mine", "cpu"), both.pair)) is not None:
            drawing.set()
            work.wait()

    monkeypatch.setattr(maps, "patch", slow)
    monkeypatch.setattr(maps, "verdict", verdict)
    at = page()
    at.button(key="compute patches").click().run()
    assert drawing.is_set()
    assert "All heatmaps are exact" in says(at)


@pytest.mark.usefixtures("large")
def test_the_computation_goes_on_over_a_reload_and_is_stopped_with_what_is_ready(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = Event()
    go_on = Event()

    def slow(model: Transformer, pair: PromptPair, what: str, **known: Any) -> Patched:
        if what != maps.BY_HEAD[0]:
            at_work.set()
            assert go_on.wait(PATIENCE)
        return patch(model, pair, what, **known)

    monkeypatch.setattr(maps, "patch", slow)
    page().button(key="compute patches").click().run()
    assert at_work.wait(PATIENCE)
    at = page()
    assert "1 of 8 heatmaps are exact" in says(at)
    (bar,) = at.get("progress")
    assert "Patching" in bar.proto.text
    at.button(key="stop patches").click().run()
    go_on.set()
    work = maps.exact_map(model_key("mine", "cpu"), lm.pair(CLEAN, OTHER))
    assert work is not None
    work.wait()
    assert (work.state, list(work.value or ())) == ("stopped", [maps.BY_HEAD[0]])
    at = page()
    assert "1 of 8 heatmaps are exact" in says(at)
    assert "stopped" in says(at)
    assert at.button(key="compute patches")


def test_prompts_of_two_lengths_are_named_with_both_and_a_way_out(lm: gptviz.LanguageModel) -> None:
    at = page(corrupted="bad")
    assert "The prompt has 7 tokens and the second text 3" in at.error[0].value
    assert "4 tokens longer" in at.error[0].value
    assert not heat_maps(at)
    at.button(key="suggest corrupted").click().run()
    assert len(heat_maps(at)) == 8
    ids = lm.encode(CLEAN).tolist()
    assert at.text_area(key=CORRUPTED).value == suggest_contrast(
        model_key("mine", "cpu"), tuple(ids[-8:]), tuple(ids)
    )


def test_for_a_model_from_elsewhere_a_word_of_its_kind_is_put_in_or_the_page_says_what_to_type(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text="abcdefghijklmnopqrstuvwxyz ", card={"imported_from": "somebody/model"})
    at = opened(PAGE, model="mine", prompt="a cat is")
    assert at.text_area(key=CORRUPTED).value in [
        text for text in with_another_word("a cat is") if len(text) == 8
    ]
    assert heat_maps(at)
    at = opened(PAGE, model="mine", prompt="what is")
    assert at.text_area(key=CORRUPTED).value == ""
    assert "Type a second text above" in at.info[0].value
    assert not at.error
    assert not heat_maps(at)
    assert "suggest corrupted" not in [button.key for button in at.button]


def test_where_there_is_nothing_to_restore_that_is_said(lm: gptviz.LanguageModel) -> None:
    at = page(corrupted=CLEAN)
    assert "nothing to restore" in at.info[0].value
    assert not heat_maps(at)
    at = page(right="a", wrong="a")
    assert "choose another token for one of them" in at.info[0].value


def test_a_cell_in_the_address_is_explained_and_framed(lm: gptviz.LanguageModel) -> None:
    at = page(cell="attention.z/1/2")
    share = lm.patch(CLEAN, OTHER, what="attention.z").shares[1, 2]
    (told,) = (
        text.value.replace("\\", "") for text in at.markdown if "head 2 of block 1" in text.value
    )
    assert f"head 2 of block 1 brings {maps.percents(float(share))} of the answer" in told
    assert heat_maps(at)["Output (z)"]["layout"]["shapes"][0]["x0"] == 1.5
    at.button(key="close cell").click().run()
    assert "cell" not in at.query_params
    for strange in ("attention.z/9/0", "attention.z/1", "²/²/²"):
        at = page(cell=strange)
        assert "close cell" not in [button.key for button in at.button]


def test_the_code_of_a_preview_computes_its_numbers(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "MUCH", 0)
    found = agreeing(preview(lm.model, lm.pair(CLEAN, OTHER), NAMES))
    monkeypatch.setattr(maps, "previews", lambda _key, _pair: found)
    one = found["attention.v"]
    (code,) = (block.value for block in page(of=one.quantity.title).code)
    assert "exact=False" in code
    computed = ran(code)["result"].numbers
    assert computed.axes[0].labels == ("share restored", "logit difference")
    np.testing.assert_allclose(computed.values[0], one.restored.values, atol=1e-6)
    np.testing.assert_allclose(computed.values[1], one.answers, atol=1e-6)


def test_a_model_with_fewer_key_heads_says_which_heads_share_them(tiny_model: TinyModel) -> None:
    tiny_model("mine", text=TEXT, n_head=6, d_head=2, n_kv_head=2)
    at = page(cell="attention.k/0/1")
    assert "2 key heads for 6 heads" in says(at)
    assert "The keys of key head 1 (heads 3–5) of block 0" in says(at).replace("\\", "")
    assert drawn(heat_maps(at)["Keys (k)"]).shape == (2, 2)


def test_tokens_are_never_markup(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="<b>&*[]()")
    at = page(prompt="<b>&*[", corrupted="<b>&*]")
    (strips,) = (html.proto.body for html in at.get("html") if 'class="both"' in html.proto.body)
    assert '<bdi style="min-width: 1ch">&lt;</bdi>' in strips
    assert "<b>" not in re.sub(r"</?(bdi|span|div|style)[^>]*>", "", strips)


def test_answers_that_look_alike_can_each_be_chosen(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("mine", text=TEXT)
    monkeypatch.setattr(CharTokenizer, "labels", lambda self: ["�"] * self.vocab_size)
    at = opened(PAGE, model="mine", prompt="abc", corrupted="abd")
    options = at.selectbox(key="right").options
    assert len(set(options)) == len(options) == 1 + len(TEXT)
    at.selectbox(key="right").set_value("� (token 3)").run()
    at.selectbox(key="wrong").set_value("� (token 5)").run()
    assert not at.exception
    assert "right=3, wrong=5" in at.code[0].value


def test_a_prompt_of_one_token_is_patched_too(tiny_model: TinyModel) -> None:
    tiny_model("single", text=TEXT)
    at = opened(PAGE, model="single", prompt="a")
    assert len(heat_maps(at)) == 8


@pytest.mark.parametrize("name", ["shakespeare", "addition", "induction", "bpe"])
def test_what_is_suggested_is_true_of_the_model(name: str) -> None:
    lm = gptviz.load(name)
    default = default_prompt("decoder", lm.card)
    found = tries(read_prompt(model_key(name, "cpu"), lm, default, default))
    if name != "bpe":
        assert found
    for one in found:
        clean, corrupted = (lm.encode(one.state[key]) for key in ("prompt", CORRUPTED))
        assert len(clean) == len(corrupted)
        with torch.inference_mode():
            answers = [
                lm.tokenizer.label(int(lm.model(ids[None])[0, -1].argmax()))
                for ids in (clean, corrupted)
            ]
        assert answers[0] != answers[1]
        assert (
            f"{escape_markdown(answers[0])} after the one prompt and {escape_markdown(answers[1])} after the other"
            in one.notice
        )


def test_of_sentences_the_known_answers_are_suggested_and_what_their_prompts_are_corrupted_to() -> (
    None
):
    lm = gptviz.load("sentences")
    default = default_prompt("decoder", lm.card)
    found = tries(read_prompt(model_key("sentences", "cpu"), lm, default, default))
    assert [(one.state["prompt"], one.state[CORRUPTED]) for one in found] == [
        (one.clean, one.corrupted) for one in contrasts()
    ]
    known = contrasts()[0]
    at = opened(PAGE, model="sentences", prompt=known.clean)
    assert at.text_area(key=CORRUPTED).value == known.corrupted
    assert f"**{known.right}**" in says(at)


def test_select_boxes_choose_what_a_click_chooses(lm: gptviz.LanguageModel) -> None:
    at = page()
    at.selectbox(key="patched map").select("attention.z").run()
    what, block, place = at.query_params["cell"].split("/")
    assert what == "attention.z"
    other = (int(place) + 1) % lm.model.config.n_head
    at.selectbox(key="patched head").select(other).run()
    assert at.query_params["cell"] == f"attention.z/{block}/{other}"
    assert f"The output of head {other} of block {block}" in says(at)
    at.selectbox(key="patched map").select(None).run()
    assert "cell" not in at.query_params


def test_the_unpatched_pair_is_run_once_for_all_heatmaps(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[Any] = []
    run = patching._pass

    def counted(model: Transformer, pair: PromptPair, patches: Any) -> list[float]:
        passes.append(patches)
        return run(model, pair, patches)

    monkeypatch.setattr(patching, "_pass", counted)
    pair = lm.pair("a cab", "a bab")
    computing = maps.begin(model_key(lm.name, "cpu"), pair)
    assert computing.wait(PATIENCE)
    assert computing.value is not None
    assert len(computing.value) > 2
    assert passes.count([[]]) == 1
    for name, found in computing.value.items():
        again = patch(lm.model, pair, name)
        assert (found.clean, found.corrupted) == (again.clean, again.corrupted)
        np.testing.assert_allclose(found.answers, again.answers, atol=1e-5)


def test_features_are_patched_too_with_the_way_to_the_one_that_moves_the_answer_most(
    home: object,
) -> None:
    clean = "When Mary and John went to the shop, John gave a book to"
    corrupted = clean.replace(", John", ", Mary")
    query = {"model": "sentences", "prompt": clean, "corrupted": corrupted}
    at = opened("pages/patching.py", **query, of="Features of sentences-features")
    found = gptviz.load("sentences").patch(clean, corrupted, what="dictionary.sentences-features")
    order = np.argsort(-np.abs(found.shares[0]), kind="stable")
    best = found.places.labels[int(order[0])]
    assert f"Feature {best} of sentences-features moves the answer most" in says(at)
    drawn = numbers(chart(at, "patched features")["data"][0]["x"])
    np.testing.assert_allclose(drawn, found.shares[0][order[: len(drawn)]], atol=1e-6)
    made = ran(at.code[0].value)["result"]
    np.testing.assert_allclose(made.shares, found.shares, atol=1e-6)
    without = opened("pages/patching.py", model="induction")
    assert "Which feature?" not in says(without)
