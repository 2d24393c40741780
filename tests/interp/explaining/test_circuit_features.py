"""A circuit over features: its sums hold, the error is shown, and the check keeps what it keeps."""

from __future__ import annotations

import json

import pytest
import torch

import gptviz
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.explaining.circuit import Circuit, circuit
from gptviz.interp.explaining.circuit_check import check
from gptviz.interp.explaining.circuit_features import FrozenFeatures, features_outside
from gptviz.interp.explaining.circuit_reads import Frozen, means
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit
from gptviz.model import Config, Transformer
from tests.command_line import Capture, error, output
from tests.examples import tried
from tests.tiny import TinyModel, families, scrambled, some_ids, tiny

ALL = 10_000


def transcoders(model: Transformer, k: int = 0) -> list[Dictionary]:
    """Random transcoders of all blocks: they miss much."""
    width = model.config.d_model
    draw = torch.Generator().manual_seed(1)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    return [
        Dictionary(
            block,
            numbers(8, width),
            numbers(8),
            numbers(8, width),
            numbers(width),
            torch.zeros(8),
            k,
            name=f"of-{block}",
            target="mlp",
        )
        for block in range(model.config.n_layer)
    ]


def whole(found: Circuit) -> dict[str, float]:
    return {node.name: value for node, value in found.given.items()}


@tried(6, 25, families(n_encoder_layer=0, mlp="plain", d_mlp=20))
def test_features_and_the_error_sum_to_what_the_mlp_adds(config: Config) -> None:
    model = scrambled(config)
    ids = some_ids(5, 1)[0]
    for usual in (None, "its mean"):
        parts = Frozen(model, ids, 3, usual).logit(2, 6)  # type: ignore[arg-type]
        split = FrozenFeatures(model, ids, 3, usual, transcoders(model, k=3))  # type: ignore[arg-type]
        of_features = split.logit(2, 6)
        assert of_features.total == pytest.approx(parts.total, abs=1e-4)
        summed = float(of_features.adds.sum()) + of_features.rest
        assert summed == pytest.approx(of_features.total, abs=1e-3)


@tried(6, 25, families(n_encoder_layer=0, mlp="plain", d_mlp=20))
def test_the_inputs_of_a_feature_sum_to_what_it_gives(config: Config) -> None:
    model = scrambled(config)
    ids = some_ids(5, 1)[0]
    found = circuit(model, ids, 3, 2, 6, 1.0, most=ALL, transcoders=transcoders(model))
    assert found.error < 1e-3
    units = {node.unit for node in found.nodes if node.unit is not None}
    assert not any(unit.is_mlp for unit in units)


@pytest.mark.parametrize("usual", [None, "its mean"])
def test_what_is_explained_and_what_ends_in_the_error_are_all_of_a_whole_graph(
    usual: str | None,
) -> None:
    model = scrambled(tiny())
    ids = some_ids(5, 1)[0]
    asked = (model, ids, 3, 2, 6)
    found = circuit(*asked, 1.0, usual=usual, most=ALL, transcoders=transcoders(model))  # type: ignore[arg-type]
    # edges below the lowest threshold are neither
    assert found.share + found.missed == pytest.approx(1, abs=0.15)
    assert found.missed > 0.05
    small = circuit(*asked, 0.1, usual=usual, most=8, transcoders=transcoders(model))  # type: ignore[arg-type]
    assert len(small.nodes) <= 8
    assert small.share + small.missed < 1


def test_the_error_is_in_every_graph() -> None:
    model = scrambled(tiny())
    ids = some_ids(5, 1)[0]
    for share in (0.05, 0.3, 0.9):
        found = circuit(model, ids, 3, 2, 6, share, most=12, transcoders=transcoders(model))
        errors = [node for node in found.nodes if node.unit and node.unit.part == "missed"]
        assert errors
        for node in errors:
            assert any(edge.source == node for edge in found.edges)
            assert not any(edge.target == node for edge in found.edges)
            assert found.block_of(node.unit) in range(2)  # type: ignore[arg-type]


def test_a_transcoder_that_misses_nothing_has_an_error_of_0() -> None:
    model = scrambled(tiny(activation="relu"))
    exact = []
    for block, part in enumerate(model.blocks):
        mlp = part.mlp
        weights = (mlp.up.weight, mlp.up.bias, mlp.down.weight.T, mlp.down.bias)
        weights = tuple(each.detach().clone() for each in weights)
        size = len(mlp.up.weight)
        one = Dictionary(block, *weights, torch.zeros(size), name=f"of-{block}", target="mlp")
        exact.append(one)
    found = circuit(model, some_ids(5, 1)[0], 3, 2, 6, 0.9, most=ALL, transcoders=exact)
    assert found.missed < 1e-4
    assert found.share > 0.85


def test_features_outside_are_at_their_means_and_those_inside_go_on_computing() -> None:
    model = scrambled(tiny())
    ids = some_ids(5, 1)[0]
    one = transcoders(model)[1]
    inside = {(Unit("dictionary", index=4, called="of-1"), 2)}
    edits = features_outside(model, [one], inside, len(ids), ids)
    trace = run(model, ids[None], [one.tap, one.target_tap])
    active = one.encode(trace[one.tap][0])
    missed = trace[one.target_tap][0] - one.decode(active)
    expected = active.mean(0).repeat(len(ids), 1)
    expected[2, 4] = active[2, 4]
    out = run(model, ids[None], [one.target_tap], edits=edits)[one.target_tap][0]
    torch.testing.assert_close(out, one.decode(expected) + missed.mean(0))


def test_with_all_features_and_errors_inside_the_model_stays_as_it_is() -> None:
    model = scrambled(tiny())
    ids = some_ids(5, 1)[0]
    every = transcoders(model)
    inside = {
        (unit, place)
        for one in every
        for place in range(len(ids))
        for unit in (
            *(Unit("dictionary", index=number, called=one.name) for number in range(8)),
            Unit("missed", called=one.name),
        )
    }
    edits = features_outside(model, every, inside, len(ids), ids)
    kept = run(model, ids[None], ["logits"], edits=edits)["logits"]
    torch.testing.assert_close(kept, run(model, ids[None], ["logits"])["logits"])
    # a graph without them loses what they do
    found = circuit(model, ids, 4, 2, 6, 0.1, usual="its mean", most=4, transcoders=every)
    checked = check(found, model, means(model, ids[None]))
    assert abs(checked.kept - checked.whole) > 0.05


def test_the_command_says_what_is_explained_and_what_is_missed(capsys: Capture) -> None:
    asked = ("circuit", "sentences", "--prompt", "[ the dogs", "--share", "0.3")
    said = json.loads(output(capsys, *asked, "--nodes", "features", "--json"))
    assert said["explained"] >= 0.3
    assert 0 < said["error"] < 0.2
    spoken = [node for node in said["nodes"] if "speaks_for" in node]
    lm = gptviz.load("sentences")
    assert spoken
    for node in spoken:
        assert node["speaks_for"] == list(lm.promoted(node["name"], 3).axes[0].labels[:3])
    assert any(node["name"].endswith(".missed") for node in said["nodes"])
    plain = json.loads(output(capsys, *asked, "--json"))
    assert "explained" not in plain


def test_a_model_without_transcoders_says_how_to_fit_one(
    tiny_model: TinyModel, capsys: Capture
) -> None:
    tiny_model("mine", text="abcdefg ")
    said = error(capsys, "circuit", "mine", "--prompt", "abc", "--nodes", "features")
    assert "gptviz dictionary --block N --target mlp" in said
