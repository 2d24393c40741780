"""Comparisons: a side differs from itself by exactly nothing, swapping flips the sign, and each
side is what it is alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import gptviz
from gptviz.interp import compare
from gptviz.interp.compare import Compared, Side
from gptviz.interp.reading.embeddings import vectors
from gptviz.interp.trace import run
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Config
from gptviz.model.lora import Factors, MergedTransformer, matrices
from gptviz.model.parts.heads import Unembed
from tests.command_line import Capture, answered, error, output
from tests.tiny import VOCAB, configs, families, scrambled, some_ids, tiny

WORDS = tuple(f"word {i}" for i in range(VOCAB))
VIEWS: dict[str, Callable[[Side, Side], Compared]] = {
    "next token": compare.next_token,
    "attention of a head": lambda a, b: compare.attention(a, b, 1, 2),
    "attention of a block": lambda a, b: compare.attention(a, b, 0, None),
    "embeddings": lambda a, b: compare.embeddings(a, b).points,
    "unembeddings": lambda a, b: compare.embeddings(a, b, "unembedding").points,
    **{
        f"lens, {name}": lambda a, b, name=name: compare.logit_lens(a, b, name)
        for name in compare.LENS
    },  # type: ignore[misc]
    "attribution": lambda a, b: compare.attribution(a, b, "word 3"),
    "neurons": lambda a, b: compare.units(a, b, "blocks.1.mlp"),
    "heads of a block": lambda a, b: compare.units(a, b, "blocks.0.attention"),
    **{
        f"heads, {name}": lambda a, b, name=name: compare.head_scores(a, b, name)
        for name in compare.HEAD_SCORES
    },  # type: ignore[misc]
}


def side(
    config: Config, seed: int = 0, text: int = 0, length: int = 6, family: str = "one"
) -> Side:
    repeats = torch.tensor([[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]])
    return Side(
        scrambled(config, seed),
        tuple(some_ids(length, 1, seed=text)[0].tolist()),
        WORDS,
        family,
        repeats,
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_side_differs_from_itself_by_exactly_nothing_and_swapping_flips_the_sign(
    view: str,
) -> None:
    a = side(tiny())
    b = side(tiny(), seed=1, text=1)
    same = VIEWS[view](a, replace(a, family="another"))
    assert np.nanmax(np.abs(same.difference.values)) == 0
    there = VIEWS[view](a, b)
    back = VIEWS[view](b, a)
    np.testing.assert_array_equal(there.difference.values, -back.difference.values)
    np.testing.assert_allclose(there.difference.values, there.b.values - there.a.values, atol=1e-6)
    assert np.nanmax(np.abs(there.difference.values)) > 0


@given(
    config=configs(mask="causal", n_layer=2, final_norm=True) | families(mask="causal", n_layer=2)
)
@settings(max_examples=15, deadline=None)
def test_that_holds_for_decoders_of_every_kind(config: Config) -> None:
    a = side(config)
    b = side(config, seed=1)
    for view in ("next token", "attention of a head", "lens, entropy", "heads, first_token"):
        found = VIEWS[view](a, b)
        back = VIEWS[view](b, a)
        np.testing.assert_array_equal(found.difference.values, -back.difference.values)


def test_probabilities_are_the_softmax_of_each_model_after_its_own_text() -> None:
    a = side(tiny())
    b = side(tiny(), seed=1, text=1, length=4)
    found = compare.next_token(a, b)
    for one, shown in ((a, found.a), (b, found.b)):
        with torch.no_grad():
            expected = one.model(torch.tensor([one.ids]))[0, -1].double().softmax(-1)
        np.testing.assert_allclose(shown.values, expected, atol=1e-6)
    by_loop = (
        sum(abs(float(x) - float(y)) for x, y in zip(found.a.values, found.b.values, strict=True))
        / 2
    )
    assert compare.total_variation(found) == pytest.approx(by_loop)


def test_tokens_of_two_vocabularies_are_matched_by_their_form_and_those_of_one_alone_have_no_difference() -> (
    None
):
    a = side(tiny())
    forms = ("word 3", "word 3", *(f"other {i}" for i in range(VOCAB - 2)))
    b = replace(side(tiny(), seed=1), vocabulary=forms)
    found = compare.next_token(a, b)
    labels = found.difference.axes[0].labels
    at = labels.index("word 3")
    with torch.no_grad():
        shares = b.model(torch.tensor([b.ids]))[0, -1].double().softmax(-1)
    assert found.b.values[at] == pytest.approx(float(shares[:2].sum()))
    assert np.isfinite(found.difference.values).sum() == 1
    assert np.nansum(found.a.values) == pytest.approx(1)
    assert np.nansum(found.b.values) == pytest.approx(1)


def test_what_differs_most_and_what_is_likeliest_is_chosen_and_what_differs_most_comes_first() -> (
    None
):
    axes = (Axis("token", tuple("abcdef")),)
    a = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    b = np.array([0.5, 0.1, 0.3, 0.04, 0.03, 0.03])
    found = compare.chosen(compare.compared(*(LabelledArray(one, axes, "p") for one in (a, b))), 4)
    assert found.difference.axes[0].labels[0] == "c"
    assert "a" in found.difference.axes[0].labels, (
        "the likeliest of both sides, though it did not change"
    )
    sizes = np.abs(found.difference.values).tolist()
    assert sizes == sorted(sizes, reverse=True), "whether it became likelier or less likely"
    assert "b" in found.difference.axes[0].labels[:2]


def test_what_is_below_the_least_on_both_sides_is_left_out_but_what_is_likeliest_is_not() -> None:
    axes = (Axis("token", tuple("abcde")),)
    a = np.array([0.9, 0.0999, 0.0001, 0.0, np.nan])
    b = np.array([0.9, 0.0008, 0.0009, 0.0, 0.0983])
    found = compare.chosen(
        compare.compared(*(LabelledArray(one, axes, "p") for one in (a, b))), 5, least=0.001
    )
    assert set(found.a.axes[0].labels) == {"a", "b", "e"}
    assert (
        len(
            compare.chosen(compare.compared(*(LabelledArray(one, axes, "p") for one in (a, b))), 5)
            .a.axes[0]
            .labels
        )
        == 5
    )


def test_a_pattern_is_that_of_its_side_and_a_mean_that_of_the_heads() -> None:
    a = side(tiny(window=3))
    b = side(tiny(window=3), seed=1)
    heads = [compare.attention(a, b, 1, head).a.values for head in range(3)]
    np.testing.assert_allclose(
        compare.attention(a, b, 1, None).a.values, np.mean(heads, axis=0), atol=1e-6
    )
    assert np.isnan(heads[0][5, 2]), "masked: beyond the window"
    np.testing.assert_allclose(np.nansum(heads[0], axis=1), 1, atol=1e-6)


def test_of_a_long_text_the_end_is_that_of_the_whole() -> None:
    a = side(tiny())
    b = side(tiny(), seed=1)
    whole, end = (compare.attention(a, b, 1, 0, last) for last in (None, 2))
    np.testing.assert_array_equal(end.difference.values, whole.difference.values[-2:])
    assert end.a.axes[0].labels == a.tokens[-2:]
    read, ending = (compare.logit_lens(a, b, "entropy", last) for last in (None, 2))
    np.testing.assert_allclose(ending.b.values, read.b.values[:, -2:], atol=1e-5)
    assert ending.a.axes[1].labels == a.tokens[-2:]
    table = compare.changed_heads(a, b, last=1)
    assert table.values[1, 0] == pytest.approx(
        np.nansum(np.abs(whole.difference.values[-1])) / 2, abs=1e-6
    )


def test_how_much_each_head_changed_is_the_share_of_attention_on_other_tokens() -> None:
    a = side(tiny())
    b = side(tiny(), seed=1)
    table = compare.changed_heads(a, b)
    assert table is not None
    for block in range(2):
        for head in range(3):
            found = compare.attention(a, b, block, head)
            loop = np.mean([np.nansum(np.abs(row)) / 2 for row in found.difference.values])
            assert table.values[block, head] == pytest.approx(loop, abs=1e-6)
    assert compare.changed_heads(a, side(tiny(), length=4)) is None


def test_in_parts_of_the_blocks_the_heads_that_changed_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = side(tiny(n_layer=4))
    b = side(tiny(n_layer=4), seed=1)
    whole = compare.changed_heads(a, b)
    monkeypatch.setattr(compare, "MOST_HELD", 1)
    ran: list[int] = []
    for index, block in enumerate(a.model.blocks):
        block.register_forward_pre_hook(lambda _block, _args, index=index: ran.append(index))
    parts = compare.changed_heads(a, b)
    assert ran == [0, 1, 2, 3], "the pass goes on where it ended"
    np.testing.assert_array_equal(whole.values, parts.values)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (side(tiny(), length=4), "A has 6 tokens and B has 4 tokens"),
        (side(tiny(n_layer=3)), "A has 5 layers and B has 7 layers"),
    ],
)
def test_what_has_other_cells_has_no_difference_and_says_why(other: Side, why: str) -> None:
    found = compare.logit_lens(side(tiny()), other)
    assert found.difference is None
    assert found.why == why
    assert len(found.table().values) == found.a.values.size + found.b.values.size


def test_snapshots_of_one_model_are_not_turned_and_what_did_not_change_did_not_move() -> None:
    a = side(tiny())
    b = replace(a, model=scrambled(tiny()))
    with torch.no_grad():
        b.model.embed.weight[4] += 1.0
    found = compare.embeddings(a, b)
    assert not found.turned
    assert np.flatnonzero(found.distance.values).tolist() == [4]
    assert found.distance.values[4] == pytest.approx(12**0.5, rel=1e-5)
    assert np.flatnonzero(found.points.difference.values.any(axis=1)).tolist() == [4]


def test_of_two_models_too_swapping_flips_the_sign_to_the_last_bit() -> None:
    a = side(tiny())
    b = side(tiny(d_model=24), seed=1, family="another")
    there = compare.embeddings(a, b)
    back = compare.embeddings(b, a)
    assert there.turned
    np.testing.assert_array_equal(there.points.difference.values, -back.points.difference.values)
    np.testing.assert_array_equal(there.distance.values, back.distance.values)


@pytest.mark.parametrize("width", [12, 24])
def test_a_model_that_is_only_turned_and_stretched_lies_on_the_other(width: int) -> None:
    a = side(tiny())
    wide = scrambled(tiny(d_model=width))
    # [12, width]
    turn = torch.linalg.qr(torch.randn(width, width, generator=torch.Generator().manual_seed(0)))[
        0
    ][:12]
    with torch.no_grad():
        wide.embed.weight.copy_(3 * a.model.embed.weight @ turn + 1)
    found = compare.embeddings(a, replace(a, model=wide, family="another"))
    assert found.turned
    np.testing.assert_allclose(found.distance.values, 0, atol=1e-4)


def test_what_moved_is_measured_over_all_dimensions_of_the_tokens_in_common() -> None:
    a = side(tiny())
    b = replace(side(tiny(), seed=1), vocabulary=(*WORDS[1:], "new"))
    found = compare.embeddings(a, b)
    rows = vectors(a.model, "embedding"), vectors(b.model, "embedding")
    expected = [np.linalg.norm(rows[1][i - 1].astype(float) - rows[0][i]) for i in range(1, VOCAB)]
    np.testing.assert_allclose(found.distance.values, expected, rtol=1e-6)
    assert found.left_out == (1, 1)
    assert found.distance.axes[0].labels == WORDS[1:]


def test_the_parts_of_each_side_add_up_to_its_logit() -> None:
    a = side(tiny())
    b = side(tiny(n_layer=3), seed=1)
    found = compare.attribution(a, b, "word 3")
    assert isinstance(b.model.head, Unembed)
    for one, shown in ((a, found.a), (b, found.b)):
        with torch.no_grad():
            logit = one.model(torch.tensor([one.ids]))[0, -1, 3]
        assert np.nansum(shown.values) == pytest.approx(float(logit), abs=1e-4)
    assert (
        np.isnan(found.difference.values).sum()
        == sum("block 2" in name for name in found.b.axes[0].labels)
        > 3
    )


def test_the_command_line_says_what_the_library_says(capsys: Capture) -> None:

    asked = [
        "compare",
        "induction",
        "--step",
        "0",
        "--prompt",
        "1 2 3 1 2",
        "--b-prompt",
        "1 2 3 1 3",
    ]
    asked += ["--b-without", "blocks.0.attention.head.1"]
    a = gptviz.load("induction", "cpu", step=0).side("1 2 3 1 2")
    b = gptviz.load("induction", "cpu").edited("blocks.0.attention.head.1").side("1 2 3 1 3")
    views = {
        "next_token": compare.next_token(a, b),
        "lens": compare.logit_lens(a, b),
        "embeddings": compare.embeddings(a, b).points,
    }
    views |= {
        "attention": compare.attention(a, b, 1, 0),
        "heads": compare.head_scores(a, b, "induction"),
    }
    for what, found in views.items():
        said = answered(
            capsys, *asked, "--device", "cpu", "--what", what, "--block", "1", "--head", "0"
        )
        shown = np.array(said["difference"]["values"], float)
        np.testing.assert_allclose(shown, found.difference.values, atol=1e-6)
        assert [axis["labels"] for axis in said["a"]["axes"]] == [
            list(axis.labels) for axis in found.a.axes
        ]
    said = output(capsys, *asked, "--what", "attribution").splitlines()
    assert said[0] == "A: induction after 0 steps, reading '1 2 3 1 2'"
    assert said[1] == "B: induction without blocks.0.attention.head.1, reading '1 2 3 1 3'"
    assert len(said) > 8
    assert "no score 'delta' of heads; there are previous_token, induction" in error(
        capsys, *asked, "--what", "heads", "--score", "delta"
    )


def test_weights_differ_by_the_norm_of_what_was_added_to_each_and_by_nothing_elsewhere() -> None:
    a = side(tiny())
    b = replace(a, model=scrambled(tiny()))
    generator = torch.Generator().manual_seed(0)
    added = torch.randn(b.model.blocks[1].mlp.up.weight.shape, generator=generator)
    with torch.no_grad():
        b.model.blocks[1].mlp.up.weight += added
    found = compare.weights(a, b)
    rows, columns = (axis.labels for axis in found.difference.axes)
    assert rows == (compare.OUTSIDE, "0", "1")
    assert columns[:4] == ("attention.output", "attention.qkv", "mlp.up", "mlp.down")
    at = rows.index("1"), columns.index("mlp.up")
    assert found.difference.values[at] == pytest.approx(added.norm().item(), rel=1e-5)
    assert found.a.values[at] == pytest.approx(
        a.model.blocks[1].mlp.up.weight.norm().item(), rel=1e-6
    )
    assert compare.relative(found).values[at] == found.difference.values[at] / found.a.values[at]
    found.difference.values[at] = 0
    assert np.nansum(found.difference.values) == 0
    names = {name for name, one in a.model.named_parameters() if one.dim() == 2}
    assert np.isfinite(found.a.values).sum() == len(names)
    assert np.isnan(found.a.values[0, 0])
    expected = np.linalg.svd(added.numpy(), compute_uv=False)
    np.testing.assert_allclose(
        compare.singular_values(a, b, "blocks.1.mlp.up").values, expected, rtol=1e-4
    )
    assert not compare.singular_values(a, b, "embed").values.any()


def test_guesses_move_by_the_divergence_of_b_from_a_at_every_token_that_both_read() -> None:
    a = side(tiny())
    b = replace(a, model=scrambled(tiny(), seed=5))
    found = compare.moved_guesses(a, b)
    assert found is not None
    assert found.axes[0].labels == a.tokens
    with torch.inference_mode():
        p, q = (one.model(torch.tensor([a.ids]))[0].double().softmax(-1) for one in (a, b))
    expected = [
        sum(x * math.log(x / y) for x, y in zip(*rows, strict=True))
        for rows in zip(p.tolist(), q.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-7)
    assert not compare.moved_guesses(a, a).values.any()
    assert compare.moved_guesses(a, replace(b, ids=b.ids[:-1])) is None


def test_the_change_of_an_adapter_has_as_many_singular_values_as_its_rank() -> None:
    a = side(tiny())
    generator = torch.Generator().manual_seed(0)
    adapter = {
        name: Factors(
            torch.randn(2, reads, generator=generator), torch.randn(out, 2, generator=generator)
        )
        for name, (out, reads) in matrices(tiny()).items()
    }
    b = replace(a, model=MergedTransformer(a.model, adapter))
    for name in adapter:
        values = compare.singular_values(a, b, name).values
        assert (values > 1e-4 * values[0]).sum() == 2
    half = compare.weights(a, replace(b, model=b.model.with_strength(0.5)))
    whole = compare.weights(a, b)
    np.testing.assert_allclose(
        half.difference.values, whole.difference.values / 2, rtol=1e-4, atol=1e-6
    )
    assert not compare.weights(a, replace(b, model=b.model.with_strength(0))).largest


def test_weights_of_other_shapes_have_no_difference_and_matrices_that_are_not_there_are_named() -> (
    None
):
    a = side(tiny())
    for other, why in (
        (tiny(n_layer=3), "of the weights blocks.2"),
        (tiny(d_mlp=8), "of the weights blocks.0.mlp.up A has 20 × 12"),
    ):
        found = compare.weights(a, side(other))
        assert found.difference is None
        assert found.why.startswith(why)
    with pytest.raises(ValueError, match="there is no matrix 'blocks.9.mlp.up'"):
        compare.singular_values(a, a, "blocks.9.mlp.up")
    with pytest.raises(ValueError, match="blocks.0.mlp.up has the shape"):
        compare.singular_values(a, side(tiny(d_mlp=8)), "blocks.0.mlp.up")


def test_units_have_the_mean_of_their_numbers_over_the_text_and_features_are_units(
    home: object,
) -> None:
    lm = gptviz.load("sentences")
    texts = ("When Mary and John went to the shop, John gave a book to", "Mary has a red hat")
    a, b = map(lm.side, texts)
    dictionary = lm.dictionary()
    both = compare.units(a, b, f"dictionary.{dictionary.name}")
    for side, text in ((both.a, texts[0]), (both.b, texts[1])):
        stream = run(lm.model, lm.encode(text)[None], [dictionary.tap])[dictionary.tap][0]
        # by hand: W (x − c) + b at each token, of which the k largest count
        means = torch.zeros(len(dictionary.encoder), dtype=torch.float64)
        for vector in stream:
            before = dictionary.encoder @ (vector - dictionary.decoder_bias)
            before = before + dictionary.encoder_bias
            for feature in before.argsort(descending=True)[: dictionary.k].tolist():
                means[feature] += max(0.0, float(before[feature])) / len(stream)
        np.testing.assert_allclose(side.values, means.numpy(), atol=1e-5)
    neurons = compare.units(a, b, "blocks.1.mlp")
    seen = run(lm.model, lm.encode(texts[1])[None], ["blocks.1.mlp.neurons"])[
        "blocks.1.mlp.neurons"
    ]
    np.testing.assert_allclose(neurons.b.values, seen[0].mean(0).numpy(), atol=1e-6)
    # an edit of a feature is seen in the features: 4 at every token of B
    edited = lm.edited(dictionary.with_feature(7, 4)).side(texts[0])
    # the row of another feature may point there too: it is what is read back that is compared
    changed = compare.units(a, edited, f"dictionary.{dictionary.name}")
    assert changed.largest > 0.1
    with pytest.raises(ValueError, match="there is no dictionary none"):
        compare.units(a, b, "dictionary.none")
    with pytest.raises(ValueError, match="not made of units"):
        compare.units(a, b, "embed")


def test_the_command_compares_units_and_says_which_layers_have_some(
    home: object, capsys: Capture
) -> None:
    text = "Mary has a"
    of_b = ("--b-step", "256", "--prompt", text, "--what", "units")
    said = answered(
        capsys, "compare", "sentences", *of_b, "--layer", "dictionary.sentences-features"
    )
    b = gptviz.load("sentences", step=256)
    both = compare.units(
        gptviz.load("sentences").side(text), b.side(text), "dictionary.sentences-features"
    )
    assert both.difference is not None
    np.testing.assert_allclose(said["difference"]["values"], both.difference.values, atol=1e-6)
    lines = output(capsys, "compare", "sentences", *of_b, "--block", "1")
    assert "neuron" in lines
    assert "not made of units" in error(
        capsys, "compare", "sentences", *of_b, "--layer", "blocks.0.mlp.neuron.3"
    )
