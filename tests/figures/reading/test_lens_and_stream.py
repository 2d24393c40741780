"""The pictures of the logit lens and the residual stream: every number is drawn where it belongs,
and names stay text.
"""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.kit.scatter import side_by_side
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.reading.lens import NAMED, by_layer, rise_and_fall
from gptviz.figures.reading.stream import draw_written
from gptviz.labelled_array import Axis, LabelledArray

LAYERS = ("embed", "blocks.0.attention", "blocks.0.mlp")
SHORT = ("embedding", "attention 0", "MLP 0")
HOSTILE = ("<b>x</b>", "%{y}", "a\u202eb", "d", "e", "f", "g")


def course() -> LabelledArray:
    values = np.random.default_rng(0).dirichlet(np.ones(len(HOSTILE)), len(LAYERS)).T
    return LabelledArray(values, (Axis("token", HOSTILE), Axis("layer", LAYERS)), "probability")


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_token_has_a_line_over_all_layers_the_first_ones_with_a_name(theme: Theme) -> None:
    figure = rise_and_fall(course(), SHORT, theme, height=400, opened=1)
    lines = sorted(figure.data, key=lambda line: line.legendrank)
    np.testing.assert_allclose([line.y for line in lines], course().values)
    assert [line.showlegend for line in lines] == [i < NAMED for i in range(len(HOSTILE))]
    assert lines[0].name == lines[0].customdata[0][0] == "&lt;b&gt;x&lt;/b&gt;"
    assert not any("%{y}" in line.hovertemplate for line in lines)
    assert figure.layout.shapes[0].x0 == 1
    assert list(figure.layout.xaxis.ticktext) == list(SHORT)


def test_on_a_logarithmic_scale_nothing_falls_out_of_the_picture() -> None:
    table = course()
    none = LabelledArray(np.where(table.values < 0.1, 0.0, table.values), table.axes, table.unit)
    figure = rise_and_fall(none, SHORT, LIGHT, height=400, opened=0, logarithmic=True)
    assert figure.layout.yaxis.type == "log"
    assert all((np.asarray(line.y) > 0).all() for line in figure.data)


def test_of_many_layers_some_are_named_and_the_last_is() -> None:
    names = tuple(f"blocks.{i}" for i in range(61))
    table = LabelledArray(
        np.full((1, 61), 0.5), (Axis("token", ("a",)), Axis("layer", names)), "probability"
    )
    figure = rise_and_fall(table, names, LIGHT, height=400, opened=60)
    assert len(figure.layout.xaxis.tickvals) <= 16
    assert figure.layout.xaxis.ticktext[-1] == "blocks.60"


def test_each_lens_has_a_line_over_all_layers() -> None:
    table = LabelledArray(
        np.arange(6.0).reshape(2, 3), (Axis("lens", HOSTILE[:2]), Axis("layer", LAYERS)), "nats"
    )
    figure = by_layer(table, SHORT, DARK, height=300)
    np.testing.assert_array_equal([line.y for line in figure.data], table.values)
    assert [line.customdata[2][0] for line in figure.data] == [LAYERS[2]] * 2
    assert not any("<b>x</b>" in line.hovertemplate for line in figure.data)
    assert list(figure.layout.xaxis.ticktext) == list(SHORT)


def test_what_is_written_differs_by_colour_and_hatching() -> None:
    writers = ("blocks.0.attention", "blocks.0.cross_attention", "blocks.0.mlp")
    table = LabelledArray(
        np.array([[2.0, 0.5, 1.0], [-0.1, 0.2, 0.3]]),
        (Axis("quantity", ("size", "along")), Axis("sublayer", writers)),
        "share",
    )
    figure = draw_written(table, LIGHT, height=400, guesses=["<b>x</b>", "y", "z"])
    assert sorted((one.x[0], one.y[0]) for one in figure.data) == list(enumerate((2, 0.5, 1)))
    assert len({one.marker.color for one in figure.data}) == 3
    assert len({one.marker.pattern.shape for one in figure.data}) == 3
    assert {one.text[0] for one in figure.data} == {"2", "0.5", "1"}
    assert list(figure.data[0].customdata[0]) == ["blocks.0.cross_attention", "0.5"]
    assert figure.layout.yaxis.rangemode == "tozero"
    below = figure.layout.xaxis.ticktext
    assert below[0] == "attention 0<br>→ &lt;b&gt;x&lt;/b&gt;"
    assert below[2] == "MLP 0<br>→ z"


def test_sizes_that_differ_very_much_stand_on_a_logarithmic_axis() -> None:
    writers = ("blocks.0.attention", "blocks.0.mlp")
    for sizes, kind in (((0.01, 10.0), "log"), ((1.0, 10.0), None), ((0.0, 0.0), None)):
        table = LabelledArray(
            np.array([sizes, sizes]),
            (Axis("quantity", ("size", "along")), Axis("sublayer", writers)),
            "share",
        )
        assert draw_written(table, LIGHT, height=400).layout.yaxis.type == kind


def test_of_many_sublayers_the_blocks_are_named_each_in_its_middle() -> None:
    names = tuple(f"blocks.{block}.{part}" for block in range(12) for part in ("attention", "mlp"))
    shares = LabelledArray(
        np.ones((2, 24)), (Axis("quantity", ("size", "along")), Axis("sublayer", names)), "share"
    )
    axis = draw_written(shares, LIGHT, height=400).layout.xaxis
    assert axis.ticktext == tuple(f"block {block}" for block in range(12))
    assert axis.tickvals == tuple(2 * block + 0.5 for block in range(12))
    names = tuple(f"blocks.{block}.mlp" for block in range(40))
    shares = LabelledArray(np.ones((2, 40)), (shares.axes[0], Axis("sublayer", names)), "share")
    axis = draw_written(shares, LIGHT, height=400).layout.xaxis
    assert axis.ticktext[:2] == ("block 0", "block 2"), "of more blocks than fit, every second one"
    assert axis.tickvals[1] == 2
    assert axis.ticktext[-1] == "block 39", "the last one always"
    guesses = [f"word {block}" for block in range(40)]
    axis = draw_written(shares, LIGHT, height=400, guesses=guesses).layout.xaxis
    assert axis.ticktext[1] == "block 2 → word 2"
    assert axis.ticktext[-1] == "block 39 → word 39"


def test_pictures_side_by_side_have_one_scale_and_their_titles() -> None:
    tokens = Axis("token", HOSTILE[:4])
    points = [np.random.default_rng(seed).normal(size=(4, 2)) * (seed + 1) for seed in range(3)]
    shown = [
        LabelledArray(one, (tokens, Axis("component", ("1", "2"))), "coordinate") for one in points
    ]
    figure = side_by_side(
        shown, ["one", "two", "three"], ["vowel", "digit", "vowel", "space"], LIGHT, height=200
    )
    assert [note.text for note in figure.layout.annotations] == ["one", "two", "three"]
    assert figure.layout.xaxis.range == figure.layout.yaxis3.range
    for index, one in enumerate(points):
        place = f"x{index + 1}" if index else "x"
        drawn = {
            name: (x, y)
            for t in figure.data
            if t.xaxis == place
            for name, x, y in zip(t.hovertext, t.x, t.y, strict=True)
        }
        centred = one - one.mean(0)
        np.testing.assert_allclose(drawn["d"], centred[3])
        np.testing.assert_allclose(drawn["&lt;b&gt;x&lt;/b&gt;"], centred[0])
        assert np.abs(centred).max() < figure.layout.xaxis.range[1]
