"""Circuits: that of a hand-built induction head is found whole, the sums hold, and the check keeps
what the graph keeps.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gptviz.interp.explaining.circuit import Circuit, Node, circuit
from gptviz.interp.explaining.circuit_check import check, mean_outside
from gptviz.interp.explaining.circuit_reads import Frozen, means
from gptviz.interp.trace import run
from gptviz.model import Config
from tests.examples import tried
from tests.hand_built import LOUD, induction_circuit
from tests.tiny import families, scrambled, some_ids, tiny

# 5 7 … 5: the induction head reads the 7 at position 2, since a head of block 0 has written there
# that a 5 stood before it.
TEXT = torch.tensor([3, 5, 7, 1, 8, 2, 9, 5])
LAST = 7
ANSWER = 7
CIRCUIT = {
    ("blocks.1.attention.head.2@7", "logit@7", "logit"),
    ("embed@2", "blocks.1.attention.head.2@7", "value"),
    ("embed@7", "blocks.1.attention.head.2@7", "query"),
    ("blocks.0.attention.head.1@2", "blocks.1.attention.head.2@7", "key"),
    ("embed@1", "blocks.0.attention.head.1@2", "value"),
    ("positions@1", "blocks.0.attention.head.1@2", "key"),
    ("positions@2", "blocks.0.attention.head.1@2", "query"),
}


def _edges(found: Circuit) -> set[tuple[str, str, str]]:
    return {(edge.source.name, edge.target.name, edge.kind) for edge in found.edges}


SHARES = (0.5, 0.8, 0.9, 0.95)
RANDOM_TEXTS = torch.randint(10, (8, 20), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("share", "texts"),
    [*((share, None) for share in SHARES), (0.9, RANDOM_TEXTS), (0.8, TEXT[None])],
)
def test_a_hand_built_induction_circuit_is_found_whole_and_nothing_else(
    share: float, texts: Tensor | None
) -> None:
    """Also where only what differs from the mean over texts counts, be they many or so short a text
    itself.
    """
    model = induction_circuit()
    found = circuit(
        model, TEXT, LAST, ANSWER, share=share, usual=None if texts is None else means(model, texts)
    )
    assert _edges(found) == CIRCUIT
    assert found.reached
    assert texts is not None or found.total == pytest.approx(LOUD)


def test_the_main_path_of_the_hand_built_circuit_is_the_token_that_its_head_copies() -> None:
    found = circuit(induction_circuit(), TEXT, LAST)
    path = ["embed@2", "blocks.1.attention.head.2@7", "logit@7"]
    assert [node.name for node in found.main_path] == path


@tried(6, 25, families(n_encoder_layer=0))
def test_one_pass_through_the_model_gives_means_the_likeliest_token_and_the_circuit(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(6, 1)[0]
    likeliest = int(run(model, ids[None])["logits"][0, 3].argmax())
    expected = circuit(model, ids, 3, likeliest, usual=means(model, ids[None]), most=20)
    passes: list[object] = []
    model.register_forward_hook(lambda *_: passes.append(1))
    found = circuit(model, ids, 3, usual="its mean", most=20)
    assert len(passes) == 1
    assert found.token == likeliest
    assert found.total == pytest.approx(expected.total, abs=1e-6)
    assert found.rest == pytest.approx(expected.rest, abs=1e-4)
    values = {(edge.source.name, edge.target.name, edge.kind): edge.value for edge in found.edges}
    assert {
        (e.source.name, e.target.name, e.kind): pytest.approx(e.value, abs=1e-4)
        for e in expected.edges
    } == values


def test_the_check_of_the_hand_built_circuit_keeps_the_whole_answer_and_without_any_of_its_heads_loses_it() -> (
    None
):
    model = induction_circuit()
    usual = means(model, TEXT[None])
    found = circuit(model, TEXT, LAST, ANSWER)
    checked = check(found, model, usual)
    assert checked.kept == pytest.approx(checked.whole)
    assert checked.share == pytest.approx(1.0)
    assert checked.likeliest == ANSWER
    for gone in (node for node in found.nodes if node.unit is not None and node.unit.is_head):
        nodes = {
            (node.unit, node.position) for node in found.nodes if node not in (gone, found.nodes[0])
        }
        edits = mean_outside(model, nodes, len(TEXT), usual)  # type: ignore[arg-type]
        left = float(run(model, TEXT[None], edits=edits)["logits"][0, LAST, ANSWER])
        assert left < 0.6 * checked.whole, gone.name


@tried(6, 25, families(n_encoder_layer=0))
def test_a_graph_of_everything_keeps_every_answer_and_its_logit_edges_sum_to_the_logit(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(4, 1)[0]
    found = circuit(model, ids, 3, 2, 6, share=1.0, most=10_000)
    direct = sum(edge.value for edge in found.edges if edge.kind == "logit")
    run_once = Frozen(model, ids, 3)
    frozen = run_once.logit(2, 6)
    left_out = float(frozen.adds.abs().sum()) - sum(
        abs(edge.value) for edge in found.edges if edge.kind == "logit"
    )
    assert abs(direct + found.rest - found.total) <= left_out + 1e-4 * max(
        1.0, float(frozen.adds.abs().sum())
    )
    everything = {(unit, place) for unit in run_once.units for place in range(4)}
    edits = mean_outside(model, everything, 4, means(model, some_ids(8, 2)))
    torch.testing.assert_close(
        run(model, ids[None], edits=edits)["logits"], run(model, ids[None])["logits"]
    )


@tried(6, 25, families(n_encoder_layer=0))
def test_every_edge_is_what_its_source_adds_along_the_edges_above_it(config: Config) -> None:
    """Each node's direction is put together again from the edges of the graph, from the logit
    down.
    """
    model = scrambled(config)
    ids = some_ids(5, 1)[0]
    found = circuit(model, ids, 4, 2, 6, share=0.6)
    frozen = Frozen(model, ids, 4)
    directions: dict[Node, Tensor] = {}
    order = {unit: i for i, unit in enumerate(frozen.units)}
    for target in sorted(found.nodes, key=lambda node: -order.get(node.unit, len(order))):  # type: ignore[arg-type]
        ways = (
            [frozen.logit(2, 6)]
            if target.unit is None
            else frozen.inputs_of(target.unit, target.position, directions[target])
        )
        for reads in ways:
            edges = [
                edge for edge in found.edges if edge.target == target and edge.kind == reads.kind
            ]
            assert sum(edge.share for edge in edges) <= 1 + 1e-5
            for edge in edges:
                assert edge.source.unit is not None
                row = reads.at.tolist().index(edge.source.position)
                adds = float(reads.adds[row, frozen.place[edge.source.unit]])
                assert edge.value == pytest.approx(adds, rel=1e-3, abs=1e-5)
                below = reads.directions[edge.source.unit.layer][row]
                directions[edge.source] = (
                    directions.get(edge.source, torch.zeros_like(below)) + below
                )
    for node in found.nodes[1:]:
        given_up = sum(edge.value for edge in found.edges if edge.source == node)
        assert found.given[node] == pytest.approx(given_up, rel=1e-5, abs=1e-6)
        assert any(edge.source == node for edge in found.edges)


@tried(6, 25, families(n_encoder_layer=0))
def test_the_share_is_at_least_what_was_asked_for_or_the_graph_says_that_it_is_not(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(5, 1)[0]
    found = circuit(model, ids, 4, 2, share=0.7, most=20)
    assert 0 <= found.share <= 1 + 1e-5
    assert found.reached == (found.share >= 0.7)
    assert found.reached or len(found.nodes) <= 20


def test_a_share_of_all_takes_everything_in() -> None:
    found = circuit(
        scrambled(tiny(d_mlp=0, n_layer=1)), some_ids(3, 1)[0], 2, 1, 4, share=0.99, most=10_000
    )
    assert found.reached
    assert found.share == pytest.approx(1.0, abs=0.01)
