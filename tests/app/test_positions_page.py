"""The Positions page as a reader meets it, without a browser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gptviz
from gptviz.interp.reading import positions
from gptviz.ui.pages.positions import vectors
from tests.app.opening import charts, page_at, says
from tests.examples import quick
from tests.tiny import TinyModel

page = page_at("pages/positions.py")


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "relative", "alibi", "none"])
def test_the_page_opens_on_every_kind_of_positions(tiny_model: TinyModel, kind: str) -> None:
    tiny_model(positions=kind, d_head=4)
    at = page(model="tiny")
    assert not at.warning or "vocabulary" in at.warning[0].value
    assert len(charts(at)) == 1, "its own; without positions, another kind"
    at = page(model="tiny", beside="ALiBi" if kind == "rotary" else "rotary", waves="true")
    # The model's own and another beside it, a table and a wave; without positions there is nothing
    # of its own to show.
    assert len(charts(at)) == (3 if kind == "none" else 4)
    assert ("no position encoding" in says(at)) == (kind == "none")


def test_rotary_positions_are_described_as_this_model_turns_them(tiny_model: TinyModel) -> None:
    tiny_model(
        positions="rotary",
        d_head=8,
        rotary_fraction=0.5,
        window=3,
        window_pattern="fw",
        window_rotary_base=50.0,
    )
    for block, base in (("0", 10_000), ("1", 50)):
        at = page(model="tiny", table="rotary", wave="1", block=block)
        assert f"pair i turns by ${base}^{{−i / 2}}$ radians" in says(at)
        assert "for the first 2 of 4 pairs" in says(at)
        assert f"Pair 1, cosine: a full turn every {2 * math.pi * base**0.5:.3g} positions" in says(
            at
        )
    assert "Pair 2, cosine: this model does not turn it" in says(
        page(model="tiny", table="rotary", wave="2")
    )


@pytest.mark.parametrize("own", ["learned", "sinusoidal"])
def test_sines_first_stand_beside_where_a_link_asks_for_them(
    tiny_model: TinyModel, own: str
) -> None:
    tiny_model(positions=own, d_head=4)
    title = "Sinusoidal, sines first"
    assert title not in page(model="tiny").segmented_control(key="beside").options
    at = page(model="tiny", beside=title)
    assert at.run().segmented_control(key="beside").value == "sines-first"


def test_of_a_long_context_it_is_said_which_positions_are_shown(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "MOST_SHOWN", 8)
    tiny_model(positions="learned", context_length=20)
    at = page(model="tiny", whole="true")
    assert "One in 3 of the 20 positions is shown, up to 18." in says(at)


def test_the_slider_chooses_the_wave_that_is_drawn(tiny_model: TinyModel) -> None:
    tiny_model(positions="learned", d_head=4)
    at = page(model="tiny", waves="true")
    before = charts(at)[-2:]
    at.select_slider(key="wave").set_value(0).run()
    assert charts(at)[-2:] != before
    assert "A sine that repeats every 6.28 positions." in says(at)


def test_the_positions_of_the_prompt_are_framed_and_named(tiny_model: TinyModel) -> None:
    tiny_model(positions="learned", context_length=16)
    for prompt, last in (("fox", 2), ("o", 0)):
        at = page(model="tiny", prompt=prompt)
        chart = charts(at)[0]["layout"]
        (frame,) = chart["shapes"]
        assert (frame["x0"], frame["x1"], frame["y1"]) == (-0.5, last + 0.5, last + 0.5)
        named = dict(zip(chart["xaxis"]["tickvals"], chart["xaxis"]["ticktext"], strict=True))
        assert named[0] == f"0 {prompt[0]}"
        assert all(str(place) == text for place, text in named.items() if place > last)
    at.text_area(key="prompt").set_value("").run()
    assert any("empty" in info.value for info in at.info)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layer": 0}, "only from the last token"),
        ({"mask": "full"}, "tokens in no order"),
        ({}, "causal mask"),
    ],
)
def test_what_a_model_without_positions_can_know_is_that_of_this_model(
    tiny_model: TinyModel, changes: dict[str, Any], said: str
) -> None:
    tiny_model(positions="none", **changes)
    told = " ".join(info.value for info in page(model="tiny").info)
    assert [
        one
        for one in ("only from the last token", "tokens in no order", "causal mask")
        if one in told
    ] == [said]


def test_how_far_the_heads_of_alibi_look_is_computed_for_this_model(tiny_model: TinyModel) -> None:
    tiny_model(positions="learned", n_head=4, context_length=64)
    # The slopes of Press et al. 2021 for 4 heads: 1/4, 1/16, 1/64, 1/256.
    assert "head 0 takes 1 from a score within 4 positions, head 1 only after 16" in says(
        page(model="tiny")
    )


def test_a_model_of_the_smallest_sizes_is_shown(tiny_model: TinyModel) -> None:
    tiny_model(positions="learned", context_length=1, d_model=1, n_head=1)
    at = page(model="tiny", beside="ALiBi", waves="true")
    assert len(charts(at)) == 4


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("learned", "two different vectors (cosine "),
        ("rotary", "only on distances"),
        ("alibi", "only on distances"),
        ("none", ""),
    ],
)
def test_a_word_more_is_offered_where_the_model_has_positions_and_says_what_they_do(
    tiny_model: TinyModel, kind: str, said: str
) -> None:
    tiny_model(positions=kind, d_head=4, text="the yellow cat sat", context_length=24)
    at = page(model="tiny")
    about = [caption.value for caption in at.caption if "from position 10 to 17" in caption.value]
    assert len(about) == bool(said)
    assert all(said in sentence for sentence in about)
    if said:
        at.button(key="try A word more").click().run()
        assert at.text_area(key="prompt").value == "the yellow cat sat"


@pytest.mark.parametrize(
    "kind", quick(["learned", "sinusoidal", "rotary", "relative", "alibi"], "rotary", "alibi")
)
def test_positions_with_an_edit_are_shown_as_the_model_has_them(
    tiny_model: TinyModel, kind: str
) -> None:
    tiny_model(positions=kind, d_head=4)
    before = page(model="tiny")
    for edit in ("positions", "positions=shuffled"):
        at = page(model="tiny", edits=edit)
        assert any(info.value.startswith("Positions are") for info in at.info)
        by_distance = kind in ("relative", "alibi")
        assert (charts(at)[0]["data"] == charts(before)[0]["data"]) == (
            by_distance and "shuffled" in edit
        )


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("learned", "It adds to each token numbers that it learned for the place"),
        ("sinusoidal", "It adds to each token numbers of the place where the token stands, which"),
        ("rotary", "It turns each query and key by angles that grow with its place, so only the"),
        ("relative", "Each head learned numbers for every distance"),
    ],
)
def test_the_first_sentence_says_how_places_are_known_and_the_second_how_alike_they_are(
    tiny_model: TinyModel, kind: str, how: str
) -> None:
    folder = tiny_model(positions=kind, d_head=4, context_length=20)
    lm = gptviz.load(folder)
    square = lm.positions().values.astype(float)
    size = len(square)
    near = np.mean([square[i, i + 1] for i in range(size - 1)])
    far = np.mean([square[i, i + size // 2] for i in range(size - size // 2)])
    what = "distances" if kind == "relative" else "places"
    said = says(page(model="tiny")).replace("−", "-")
    assert f"**{how}" in said
    numbers = f"neighbouring {what} have {near:.2f} on average, those half the map apart {far:.2f}"
    assert numbers in said


def test_a_model_whose_positions_turn_nothing_or_were_edited_is_not_said_to_know_places(
    tiny_model: TinyModel,
) -> None:
    tiny_model(positions="rotary", d_head=4, rotary_fraction=0.1)
    assert "is not told where a token stands" in says(page(model="tiny"))
    tiny_model(positions="rotary", d_head=4)
    assert "It turns each query" in says(page(model="tiny"))
    for edit in ("positions", "positions=shuffled"):
        assert "It turns each query" not in says(page(model="tiny", edits=edit))


def test_a_map_without_values_below_0_that_stands_alone_has_a_scale_of_its_own(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model(positions="sinusoidal", d_model=48, context_length=8))
    least = lm.positions().values.min()
    assert 0 < least < 1
    alone = charts(page(model="tiny"))[0]["data"][0]
    assert (alone["zmin"], alone["zmax"]) == (pytest.approx(least), pytest.approx(1))
    assert "smallest to largest" in alone["colorbar"]["title"]["text"]
    beside = charts(page(model="tiny", beside="rotary"))[0]["data"][0]
    assert (beside["zmin"], beside["zmax"]) == (-1, 1)


def test_alibi_counts_what_is_farther_away_less(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model(positions="alibi", d_head=4))
    assert (np.diff(lm.positions().values, axis=1) < 0).all(), "in every head, at every distance"
    assert "Each head counts a token less, the farther away it stands." in says(page(model="tiny"))


@pytest.mark.parametrize("kind", ["learned", "rotary", "alibi"])
def test_of_a_long_context_the_beginning_is_shown_at_first(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(positions, "MOST_SHOWN", 24)
    monkeypatch.setattr(vectors, "READABLE", 8)
    lm = gptviz.load(tiny_model(positions=kind, d_head=4, context_length=40))
    at = page(model="tiny", prompt="fox")
    assert "The first 8 of the 40 positions are shown." in says(at)
    assert len(lm.positions(most=8).values[0]) == 8
    at.toggle(key="whole").set_value(True).run()
    assert "One in 2 of the 40 positions is shown, up to 38." in says(at)
    monkeypatch.setattr(positions, "MOST_SHOWN", 40)
    whole = lm.positions().values
    first = whole[:8, :8] if kind != "alibi" else whole[:, :8]
    np.testing.assert_allclose(lm.positions(most=8).values, first, atol=1e-6)
