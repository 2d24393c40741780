"""The page Switch off as a reader meets it, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event
from typing import Any

import numpy as np
import pytest
from streamlit.proto.Metric_pb2 import Metric as MetricProto
from streamlit.testing.v1 import AppTest
from torch.nn import functional as F

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.changing.edits import edit
from gptviz.interp.units.unit import heads_and_mlps, unit
from gptviz.text.datasets.sentences import Sentences
from gptviz.ui.pages.switch_off import grid
from gptviz.ui.views import before_after, loss_texts
from tests.app.opening import charts, opened, page_at, payload, ran
from tests.drawn import numbers
from tests.tiny import TinyModel, tiny
from tests.waiting import PATIENCE, wait_until

PROMPT = "the fox"
HEAD = "blocks.1.attention.head.2"


pytestmark = pytest.mark.usefixtures("tiny_saved")
page = page_at("pages/switch_off.py", model="tiny", prompt=PROMPT)


def cells(at: AppTest) -> dict[str, dict[str, Any]]:
    """The cells of the grid, as the browser gets them, by unit."""
    return {
        cell["name"]: cell
        for row in payload(at, "unit grid")[0]["rows"]
        for cell in row["cells"]
        if cell
    }


def loss(lm: gptviz.LanguageModel) -> float:
    ids = lm.encode(PROMPT)
    return float(F.cross_entropy(lm.trace(PROMPT)["logits"][0, :-1], ids[1:]))


def metric(at: AppTest) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.\d+", at.metric[0].value)]


def bars(at: AppTest) -> list[list[float]]:
    """The bars of the figure, before and after."""
    return [numbers(each["x"]).tolist() for each in charts(at)[0]["data"]]


def test_every_cell_has_the_change_of_the_loss_without_it() -> None:
    lm = gptviz.load("tiny")
    shown = cells(page())
    assert list(shown) == [one.name for one in heads_and_mlps(lm.model.config)]
    for name, cell in shown.items():
        assert cell["value"] == pytest.approx(loss(lm.edited(name)) - loss(lm), abs=1e-5)
        assert cell["state"] is None
    means = cells(page(by="mean", edit_text="lazy dog"))
    assert means[HEAD]["value"] == pytest.approx(
        loss(lm.edited(f"{HEAD}=mean", text="lazy dog")) - loss(lm), abs=1e-5
    )


def test_before_and_after_are_the_model_without_and_with_its_edits() -> None:
    lm = gptviz.load("tiny")
    at = page(edits=HEAD)
    assert metric(at) == pytest.approx([loss(lm), loss(lm.edited(HEAD))], abs=6e-4)
    rise = float(at.metric[0].delta.replace("−", "-"))
    assert rise == pytest.approx(loss(lm.edited(HEAD)) - loss(lm), abs=6e-4)
    before, after = (
        one.trace(PROMPT)["logits"][0, -1].softmax(-1) for one in (lm, lm.edited(HEAD))
    )
    order = sorted(before.maximum(after).topk(5).indices.tolist(), key=lambda i: -float(before[i]))
    for row, wanted in zip(bars(at), (before, after), strict=True):
        assert row == pytest.approx(wanted[order].tolist(), abs=1e-5)
    written = [block.value for block in at.code][:2]
    assert written == [
        one.generate(PROMPT, len(written[0]), temperature=0) for one in (lm, lm.edited(HEAD))
    ]
    assert cells(at)[HEAD]["state"] == HEAD
    # The colours stay: they are about the model without edits.
    assert cells(at)[HEAD]["value"] == cells(page())[HEAD]["value"]


def guess(lm: gptviz.LanguageModel, prompt: str = PROMPT) -> Any:
    return lm.trace(prompt, ["logits"])["logits"][0, -1].softmax(-1)


def test_a_page_without_edits_shows_as_an_example_the_head_that_the_guess_needs_most() -> None:
    lm = gptviz.load("tiny")
    at = page()
    likeliest = int(guess(lm).argmax())
    heads = [one.name for one in heads_and_mlps(lm.model.config) if one.is_head]
    worst = min(heads, key=lambda name: float(guess(lm.edited(name))[likeliest]))
    title = edit(worst, lm.model.config).unit.title
    assert any(one.value.startswith(f"**For example, without {title}, ") for one in at.markdown)
    assert metric(at)[1] == pytest.approx(loss(lm.edited(worst)), abs=6e-4)
    assert "edits" not in at.query_params


def test_the_arrow_beside_the_losses_points_where_the_loss_goes_and_is_green_where_it_falls() -> (
    None
):
    lm = gptviz.load("tiny")
    shown = {}
    for part in heads_and_mlps(lm.model.config):
        moved = loss(lm.edited(part.name)) - loss(lm)
        proto = page(edits=part.name).metric[0].proto
        if abs(moved) > 1e-3:
            shown[moved < 0] = proto.direction, proto.color
    assert shown == {
        True: (MetricProto.DOWN, MetricProto.GREEN),
        False: (MetricProto.UP, MetricProto.RED),
    }


def test_where_that_takes_long_the_example_is_the_head_that_the_loss_needs_most(
    monkeypatch: pytest.MonkeyPatch, fresh_caches: None
) -> None:
    lm = gptviz.load("tiny")
    monkeypatch.setattr(loss_texts, "LITTLE", 0)
    worst = max(
        (one.name for one in heads_and_mlps(lm.model.config) if one.is_head),
        key=lambda name: loss(lm.edited(name)),
    )
    assert metric(page())[1] == pytest.approx(loss(lm.edited(worst)), abs=6e-4)


def test_of_known_answers_the_example_turns_the_guess_over_and_each_task_has_the_head_that_it_needs() -> (
    None
):
    lm = gptviz.load("sentences")
    at = opened("pages/switch_off.py", model="sentences")
    known = Sentences().contrasts()
    example = re.findall(
        r"For example, without head (\d) of block (\d), ",
        " ".join(one.value for one in at.markdown),
    )
    ((head, block),) = example
    assert [name for name, cell in cells(at).items() if cell["chosen"]] == [
        f"blocks.{block}.attention.head.{head}"
    ]
    before, after = (
        guess(one, known[0].clean)
        for one in (lm, lm.edited(f"blocks.{block}.attention.head.{head}"))
    )
    assert lm.tokenizer.label(int(before.argmax())) == known[0].right
    assert int(after.argmax()) != int(before.argmax()), "the default shows something"
    label = lm.tokenizer.label(int(after.argmax()))
    said = " ".join(one.value for one in at.markdown)
    assert f"gives way to “{label}” ({percent(float(after.max()))})" in said
    offered = [button.label for button in at.button if str(button.key).startswith("try ")]
    assert offered[:2] == [known[0].title, "When this head appeared"]
    at.button(key=f"try {known[0].title}").click().run()
    edits = str(at.query_params["edits"])
    assert int(guess(lm.edited(edits), known[0].clean).argmax()) != lm.token(known[0].right)
    at.button(key="try When this head appeared").click().run()
    step = int(str(at.select_slider(key="step").value))
    early = gptviz.load("sentences", step=step)
    answers = [int(guess(one, known[0].clean).argmax()) for one in (early, early.edited(edits))]
    assert answers[0] == lm.token(known[0].right) != answers[1]


def test_any_piece_is_edited_from_the_list() -> None:
    at = page()
    config = gptviz.load("tiny").model.config
    at.selectbox(key="edit unit").select(unit("blocks.1.attention", config)).run()
    at.selectbox(key="edit becomes").select("previous").run()
    at.button(key="add edit").click().run()
    assert at.query_params["edits"] == "blocks.1.attention=previous"
    at.selectbox(key="edit unit").select(unit("blocks.0.mlp", config)).run()
    at.number_input(key="edit neuron").set_value(17).run()
    at.selectbox(key="edit becomes").select("a number").run()
    at.number_input(key="edit value").set_value(4.2).run()
    at.button(key="add edit").click().run()
    assert at.query_params["edits"] == "blocks.1.attention=previous,blocks.0.mlp.neuron.17=4.2"


@pytest.mark.parametrize(
    "config", [tiny(), tiny(n_encoder_layer=2), tiny(positions="none", d_mlp=0), tiny(n_layer=0)]
)
def test_the_list_has_every_piece_once(config: Any) -> None:
    offered = grid.units(config)
    assert len(set(offered)) == len(offered)
    assert set(heads_and_mlps(config)) <= set(offered)
    assert all(unit(one.name, config) == one for one in offered)


# of the prompt: test_code_of_pages.py
def test_the_code_computes_the_changes_of_the_loss_over_held_out_data() -> None:
    at = opened(
        "pages/switch_off.py",
        model="reversal",
        by="mean",
        over="held-out data",
        edits="blocks.0.mlp",
    )
    if not any(cell["value"] is not None for cell in cells(at).values()):
        at.button(key="compute losses").click().run()
        wait_until(lambda: all(cell["value"] is not None for cell in cells(at.run()).values()))
    shown = {name: cell["value"] for name, cell in cells(at).items()}
    assert ran(payload(at, "unit grid")[0]["code"])["result"] == pytest.approx(shown, abs=1e-6)


def test_a_model_that_is_large_waits_to_be_asked_and_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid, "MUCH", 0)
    at = page(prompt="a lazy dog")
    assert all(cell["value"] is None for cell in cells(at).values())
    assert at.metric  # an example is shown all the same
    at.button(key="compute losses").click().run()
    wait_until(lambda: all(cell["value"] is not None for cell in cells(at.run()).values()))
    again = page(prompt="a lazy dog")
    assert cells(again) == cells(at), "found again by another session"


def test_a_large_model_shows_its_guess_before_it_has_written_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = gptviz.load("tiny")
    gate = Event()
    drawn = before_after._tokens

    def slowly(*given: Any) -> Iterator[int]:
        for token in drawn(*given):
            assert gate.wait(PATIENCE)
            yield token

    monkeypatch.setattr(before_after, "LEAST", 0)
    monkeypatch.setattr(before_after, "_tokens", slowly)
    at = page(edits=HEAD, prompt="a slow fox")
    assert len(bars(at)) == 2
    assert at.metric
    assert not any(block.language == "plaintext" for block in at.code)
    at.button(key="stop writing After").click().run()
    gate.set()

    def written() -> list[str]:
        return [block.value for block in at.run().code if block.language != "python"]

    wait_until(lambda: len(written()) == 2 and not any("stop" in str(one.key) for one in at.button))
    before, after = written()
    assert before == lm.generate("a slow fox", len(before), temperature=0)
    # Stopped while the other text is begun, it may have nothing yet: that is shown as a space.
    assert (
        lm.edited(HEAD).generate("a slow fox", len(before), temperature=0).startswith(after.strip())
    )
    assert len(after) < len(before), "stopped: what was written stays"
    at.button(key="write After").click().run()
    wait_until(
        lambda: (
            written()[-1:] == [lm.edited(HEAD).generate("a slow fox", len(before), temperature=0)]
        )
    )
    # The text is there a moment before its work is done, and only then are the two compared.
    wait_until(
        lambda: any("take the likeliest token each time" in one.value for one in at.run().caption)
    )


@pytest.mark.parametrize("kind", ["classifier", "pair"])
def test_other_kinds_of_models_have_the_page_too(
    kind: str, tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    tiny_classifier("classifier") if kind == "classifier" else tiny_pair("pair")
    prompt = "the film was funny" if kind == "classifier" else "the fox"
    at = opened("pages/switch_off.py", model=kind, prompt=prompt, edits="blocks.1.mlp")
    lm = gptviz.load(kind)
    if kind == "classifier":
        first = lm.classify(prompt)
        then = lm.edited("blocks.1.mlp").classify(prompt)
        assert bars(at) == [pytest.approx(list(each.values()), abs=1e-5) for each in (first, then)]
        label = max(first, key=first.__getitem__)
        assert metric(at) == pytest.approx([-np.log(first[label]), -np.log(then[label])], abs=6e-4)
    else:
        assert [block.value.strip() for block in at.code][:2] == [
            one.answer(prompt).strip() for one in (lm, lm.edited("blocks.1.mlp"))
        ]
        assert "encoder.blocks.0.attention.head.0" in cells(at)
