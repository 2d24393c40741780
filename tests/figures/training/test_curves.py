"""Loss curves: thinned out without losing what stands out, smoothed without hiding it, told apart
by more than colour.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.figures.kit import thumbnail
from gptviz.figures.kit.format import power
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.training import curves
from gptviz.figures.training.curves import Accuracy, Curve
from tests.figures.contrast import contrast


def curve(
    name: str = "mine",
    steps: int = 50,
    *,
    seed: int = 0,
    floor: float | None = None,
    uniform: float | None = None,
) -> Curve:
    taken = np.arange(1.0, steps + 1)
    training = 2 + 2 / taken + np.random.default_rng(seed).normal(0, 0.1, steps)
    evaluated = np.arange(0.0, steps + 1, 10)
    return Curve(
        name, taken, training, evaluated, 2 + 2 / (1 + evaluated), floor=floor, uniform=uniform
    )


@given(st.integers(0, 2**32), st.integers(1, 5_000), st.booleans())
def test_thinning_keeps_first_last_lowest_and_highest_and_makes_nothing_up(
    seed: int, count: int, log_steps: bool
) -> None:
    draw = np.random.default_rng(seed)
    steps = np.cumsum(draw.integers(1, 50, count)).astype(float)
    values = draw.standard_cauchy(count)
    x, y = curves.thinned(steps, values, log_steps=log_steps)
    points = dict(zip(steps.tolist(), values.tolist(), strict=True))
    assert len(x) <= min(count, 1_002)
    assert all(points[step] == value for step, value in zip(x.tolist(), y.tolist(), strict=True))
    assert (np.diff(x) > 0).all()
    assert (x[0], x[-1]) == (steps[0], steps[-1])
    assert (y.min(), y.max()) == (values.min(), values.max())


def test_a_single_step_that_stands_out_is_never_thinned_away() -> None:
    values = np.ones(100_000)
    values[[123, 54_321]] = 9, -9
    for log_steps in (False, True):
        x, y = curves.thinned(np.arange(100_000), values, log_steps=log_steps)
        assert {(123, 9), (54_321, -9)} <= set(zip(x.tolist(), y.tolist(), strict=True))


def test_on_a_logarithmic_axis_the_first_steps_are_kept_one_by_one() -> None:
    x, _ = curves.thinned(
        np.arange(1, 100_001), np.random.default_rng(0).random(100_000), log_steps=True
    )
    assert set(range(1, 20)) <= set(x.tolist())


def test_what_is_no_number_is_left_out() -> None:
    x, y = curves.thinned([0, 1, 2, 3], [1.0, math.nan, math.inf, 2.0])
    assert (x.tolist(), y.tolist()) == ([0, 3], [1.0, 2.0])
    assert len(curves.thinned([], [])[0]) == 0


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_the_mean_is_that_of_the_last_twentieth_of_the_steps(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    steps = np.cumsum(draw.integers(1, 5, count)).astype(float)
    values = draw.normal(size=count)
    expected = []
    for step, value in zip(steps, values, strict=True):
        window = [
            other for at, other in zip(steps, values, strict=True) if 0.95 * step < at <= step
        ]
        expected.append(sum(window) / len(window) if window else value)
    smooth = curves.trailing_mean(steps, values)
    assert smooth == pytest.approx(np.array(expected))
    # No later step changes what was drawn already.
    assert curves.trailing_mean(steps[:-1], values[:-1]) == pytest.approx(smooth[:-1])


def test_the_validation_loss_is_shown_as_it_is_beside_the_raw_training_loss_and_its_mean() -> None:
    run = curve()
    raw, mean, validation = curves.losses([run], LIGHT).data
    assert run.training is not None
    assert np.asarray(raw.y) == pytest.approx(run.training)
    assert np.asarray(mean.y) == pytest.approx(curves.trailing_mean(run.steps, run.training))
    assert np.asarray(validation.x).tolist() == run.validation_steps.tolist()
    assert np.asarray(validation.y).tolist() == run.validation.tolist()
    assert raw.opacity < mean.opacity
    assert raw.line.width < validation.line.width
    assert len(curves.losses([run], LIGHT, training=False).data) == 1


def test_the_perplexity_under_the_pointer_is_e_to_the_loss() -> None:
    run = Curve(
        "mine", np.array([]), None, np.array([0.0, 1, 2, 3]), np.array([0.5, 7.5, 30.0, 900.0])
    )
    (shown,) = curves.losses([run], LIGHT).data
    assert list(shown.customdata)[:2] == [f"{math.exp(0.5):.3g}", f"{math.exp(7.5):,.0f}"]
    assert shown.customdata[2] == power(math.exp(30))
    assert "inf" not in shown.customdata[3]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_runs_are_told_apart_by_stroke_and_marker_too(theme: Theme) -> None:
    shown = curves.losses([curve(str(i)) for i in range(12)], theme, training=False).data
    assert len({(trace.line.dash, trace.marker.symbol) for trace in shown}) == 12
    assert len({trace.line.color for trace in shown[:6]}) == 6
    assert all(contrast(trace.line.color, theme.background) >= 3 for trace in shown)


@pytest.mark.parametrize("log_loss", [False, True])
def test_floor_and_guessing_are_lines_at_their_losses_once_for_all_runs(log_loss: bool) -> None:
    runs = [curve(name, floor=2.149, uniform=math.log(100)) for name in ("a", "b")]
    layout = curves.losses(runs, LIGHT, log_loss=log_loss).layout
    assert sorted(shape.y0 for shape in layout.shapes) == pytest.approx(
        [2.149, math.log(100)], abs=1e-6
    )
    assert all(shape.y0 == shape.y1 for shape in layout.shapes)
    for note, loss in zip(layout.annotations, (math.log(100), 2.149), strict=True):
        assert f"{loss:.3f}" in note.text
        # Plotly wants the logarithm of an annotation's place.
        assert note.y == pytest.approx(math.log10(loss) if log_loss else loss, abs=1e-6)
    assert "ln 100" in layout.annotations[0].text
    assert layout.annotations[1].yanchor == "top", "below its line, where no curve comes"


def test_floors_that_differ_say_whose_they_are() -> None:
    texts = [
        note.text
        for note in curves.losses(
            [curve("a", floor=1.0), curve("b", floor=2.0)], LIGHT
        ).layout.annotations
    ]
    assert ["a" in texts[0], "b" in texts[1]] == [True, True]
    assert "1.000" in texts[0]


def test_a_name_is_never_markup() -> None:
    figure = curves.losses([curve("<b>bold</b>", floor=1.0), curve("other", floor=2.0)], LIGHT)
    texts = [trace.name or "" for trace in figure.data] + [
        trace.hovertemplate for trace in figure.data
    ]
    texts += [note.text for note in figure.layout.annotations]
    assert not any("<b>bold" in text for text in texts)
    assert any("&lt;b&gt;bold" in text for text in texts)


def test_a_zoom_stays_while_a_run_grows_and_goes_with_the_scale() -> None:
    short, grown = (
        curves.losses([curve(steps=steps)], LIGHT, until=100).layout for steps in (20, 90)
    )
    assert short.uirevision == grown.uirevision
    assert short.xaxis.range == grown.xaxis.range
    assert short.margin == grown.margin
    assert curves.losses([curve()], LIGHT, log_loss=True).layout.uirevision != short.uirevision


def test_scales_are_those_asked_for_and_step_0_has_no_place_on_a_logarithmic_one() -> None:
    figure = curves.losses([curve()], LIGHT, log_steps=True, log_loss=True, until=1_000)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert figure.layout.xaxis.range == (0, 3)
    assert min(figure.data[-1].x) > 0


def test_nothing_yet_is_an_empty_picture_of_the_same_size() -> None:
    nothing = Curve("new", np.array([]), None, np.array([]), np.array([]), uniform=1.0)
    assert curves.losses([nothing], LIGHT, height=300).layout.height == 300
    assert curves.losses([], LIGHT).layout.height == curves.losses([curve()], LIGHT).layout.height
    assert len(curves.values("learning rate", "", [], [], LIGHT).data[0].x) == 0


def test_one_quantity_is_shown_as_it_is_with_its_unit() -> None:
    figure = curves.values(
        "speed", "tokens/s", [1, 2, 3], [10.0, 1_000.0, 5.0], DARK, log=True, until=10
    )
    assert np.asarray(figure.data[0].y).tolist() == [10, 1_000, 5]
    assert figure.layout.yaxis.title.text == "speed (tokens/s)"
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.xaxis.range[1] >= 10


def test_accuracies_stand_on_one_scale_as_they_are_with_those_of_the_training_data_beside_them() -> (
    None
):
    steps = np.array([0.0, 50.0, 100.0])
    held_out = np.array([0.5, 0.7, 0.72])
    trained_on = np.array([0.5, 0.8, 0.95])
    nothing = np.array([])
    one = Accuracy("<b>one</b>", "texts right", steps, held_out, steps, trained_on, epoch=25.0)
    other = Accuracy("other", "texts right", steps, held_out / 2, nothing, nothing, epoch=25.0)
    figure = curves.accuracies([one, other], LIGHT, until=100)
    assert [np.asarray(trace.y).tolist() for trace in figure.data] == [
        held_out.tolist(),
        trained_on.tolist(),
        (held_out / 2).tolist(),
    ]
    assert figure.layout.yaxis.title.text == "texts right"
    assert tuple(figure.layout.yaxis.range) == (0, 1.02)
    assert "an epoch, is 25 steps" in figure.layout.xaxis.title.text
    assert np.asarray(figure.data[0].customdata).tolist() == [0, 2, 4]
    assert (
        len({(trace.line.color, trace.line.dash, trace.line.width) for trace in figure.data}) == 3
    )
    assert all("<b>one" not in str(trace.name) for trace in figure.data)
    logarithmic = curves.accuracies([one], LIGHT, log_steps=True)
    assert np.asarray(logarithmic.data[0].x).tolist() == [50, 100]
    assert np.asarray(logarithmic.data[0].customdata).tolist() == [2, 4]


def test_a_thumbnail_has_a_line_per_run_within_its_bounds() -> None:
    for runs, lines in (([curve()], 2), ([curve("a"), curve("b", 400, seed=1)], 2)):
        drawn = thumbnail.curves(runs, LIGHT)
        ET.fromstring(drawn)
        found = re.findall(r'points="([^"]+)"', drawn)
        assert len(found) == lines
        points = np.array(
            [[float(part) for part in pair.split(",")] for line in found for pair in line.split()]
        )
        assert (points >= 0).all()
        assert (points <= [thumbnail.WIDTH, thumbnail.HEIGHT]).all()
        # What is lower in loss is lower in the picture.
        first = np.array([[float(part) for part in pair.split(",")] for pair in found[0].split()])
        assert (np.diff(first[:, 1]) > 0).all()
        assert len(drawn) < 20_000


def test_the_share_that_a_fit_misses_is_no_loss_and_a_fit_that_goes_on_is_named() -> None:
    steps = np.array([1.0, 2.0, 3.0])
    missed = np.array([0.9, 0.5, 0.25])
    none = np.array([])
    going = Curve("going", steps, missed, none, none, quantity="share missed")
    ended = Curve("ended", steps, missed, steps[2:], missed[2:], quantity="share missed")
    figure = curves.losses([going, ended], LIGHT)
    assert figure.layout.yaxis.title.text == "share missed"
    shown = [trace for trace in figure.data if len(trace.x)]
    assert all("share missed" in trace.hovertemplate for trace in shown)
    assert not any("perplexity" in trace.hovertemplate for trace in shown)
    assert [trace.name for trace in shown if trace.showlegend is not False] == [
        "going, what it learns from",
        "ended",
    ]
