"""As many random edges as a circuit has: they are possible ones, drawn alike each time, and the
hand-built circuit keeps what they do not.
"""

from __future__ import annotations

import statistics

import pytest
import torch

from gptviz.interp.explaining.circuit import Circuit, Node, circuit
from gptviz.interp.explaining.circuit_check import check, mean_outside
from gptviz.interp.explaining.circuit_reads import means
from gptviz.interp.explaining.random_edges import DRAWS, Draws, draw_graphs
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.model import Transformer
from tests.hand_built import induction_circuit
from tests.interp.explaining.test_circuit import ANSWER, LAST, TEXT
from tests.tiny import scrambled, some_ids, tiny


def drawn(found: Circuit, model: Transformer) -> list[set[Node]]:
    outside = [Unit("embed"), Unit("positions")]
    return draw_graphs(found, model, [*outside, *heads_and_mlps(model.config)])


def test_a_hand_built_circuit_keeps_all_and_as_many_random_edges_next_to_nothing() -> None:
    model = induction_circuit()
    usual = means(model, TEXT[None])
    found = circuit(model, TEXT, LAST, ANSWER)
    checked = check(found, model, usual)
    assert checked.share == pytest.approx(1.0)
    assert abs(checked.random.median) < 0.2
    assert len(checked.kept_at_random) == DRAWS
    # each is a run of the model with all but the nodes of one graph at their means
    for nodes, kept in zip(drawn(found, model), checked.kept_at_random, strict=True):
        inside = {(node.unit, node.position) for node in nodes if node.unit is not None}
        edits = mean_outside(model, inside, len(TEXT), usual)
        left = float(run(model, TEXT[None], edits=edits)["logits"][0, LAST, ANSWER])
        assert kept == pytest.approx(left)
    shares = [
        (kept - checked.without) / (checked.whole - checked.without)
        for kept in checked.kept_at_random
    ]
    assert checked.random == Draws(statistics.median(shares), min(shares), max(shares))


def test_random_graphs_are_the_same_each_time_and_have_no_more_nodes_than_edges_lead_to() -> None:
    model = scrambled(tiny(n_layer=2))
    found = circuit(model, some_ids(6, 1)[0], 4, 2, 6, share=0.5)
    graphs = drawn(found, model)
    assert graphs == drawn(found, model)
    assert len({frozenset(graph) for graph in graphs}) > DRAWS // 2, "they are not all alike"
    top = found.nodes[0]
    for graph in graphs:
        assert top in graph
        assert 1 < len(graph) <= len(found.edges) + 1
        assert all(0 <= node.position <= 4 for node in graph), "nothing after the guess is read"


def test_one_random_edge_is_as_often_each_of_those_that_lead_to_the_logit() -> None:
    model = scrambled(tiny(n_layer=1))
    found = circuit(model, some_ids(6, 1)[0], 4, 2, 6)
    one = Circuit(**{**vars(found), "edges": found.edges[:1]})
    sources = {node.unit for graph in drawn(one, model) for node in graph} - {None}
    assert all(len(graph) == 2 for graph in drawn(one, model))
    assert len(sources) > 2
    assert {node.position for graph in drawn(one, model) for node in graph} == {4}


def test_where_a_graph_has_all_edges_that_there_are_a_random_one_is_the_same() -> None:
    model = scrambled(tiny(n_layer=0))
    ids = some_ids(4, 1)[0]
    found = circuit(model, ids, 3, 2, 6, share=1.0)
    checked = check(found, model, means(model, ids[None]))
    assert checked.random.low == pytest.approx(checked.share)
    assert checked.random.high == pytest.approx(checked.share)


def test_where_there_is_nothing_to_keep_nothing_is_said_of_random_edges() -> None:
    assert str(Draws.of([0.1, float("nan")]).median) == "nan"
    assert str(Draws.of([]).low) == "nan"
    torch.testing.assert_close(Draws.of([3.0, 1.0, 2.0]).median, 2.0)
