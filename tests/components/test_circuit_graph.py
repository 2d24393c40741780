"""The graph of a circuit: what travels to the browser, and which clicks count. The browser's half
is tested in a browser.
"""

from __future__ import annotations

import json

import pytest
import torch

from gptviz.components.circuit_graph import FORMAT, payload, read_choice, read_file
from gptviz.components.kit import unpack
from gptviz.interp.explaining.circuit import Circuit, circuit
from tests.hand_built import induction_circuit


@pytest.fixture(scope="module")
def found() -> Circuit:
    return circuit(induction_circuit(), torch.tensor([3, 5, 7, 1, 8, 2, 9, 5]), 7, 7)


def header(found: Circuit, **changes: str) -> dict[str, object]:
    usual = {"of": "this", "title": "a title", "model": "a model", "code": "code"}
    return unpack(payload(found, lambda token: f"t{token}", **usual | changes))[0]  # type: ignore[arg-type]


def test_every_node_and_edge_travels_with_its_numbers(found: Circuit) -> None:
    sent = header(found, opened="embed@2")
    assert [node["name"] for node in sent["nodes"]] == [node.name for node in found.nodes]  # type: ignore[attr-defined]
    ends = [node.name for node in found.nodes]
    edges = [
        (ends[edge["from"]], ends[edge["to"]], edge["kind"], edge["value"])
        for edge in sent["edges"]  # type: ignore[attr-defined]
    ]
    assert edges == [
        (edge.source.name, edge.target.name, edge.kind, edge.value) for edge in found.edges
    ]
    assert sent["tokens"] == ["t3", "t5", "t7", "t1", "t8", "t2", "t9", "t5"]
    assert sent["opened"] == ends.index("embed@2")
    rows = {node["name"]: node["row"] for node in sent["nodes"]}  # type: ignore[attr-defined]
    assert (
        rows["positions@1"]
        < rows["embed@1"]
        < rows["blocks.0.attention.head.1@2"]
        < rows["blocks.1.attention.head.2@7"]
    )
    assert rows["logit@7"] == -1


def test_a_file_that_the_view_saved_is_read_and_nothing_else() -> None:
    file = {
        "format": FORMAT,
        "choices": {"token": 7},
        "pinned": "embed@2",
        "groups": None,
        "nodes": [],
    }
    assert read_file(json.dumps(file).encode()) == (
        {"token": 7},
        {"pinned": "embed@2", "groups": None},
    )
    for content in (
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"null",
        b'{"format": 1}',
        b"[" + b"1," * 30_000 + b"1]",
    ):
        with pytest.raises(ValueError, match="saved"):
            read_file(content)


def test_a_click_counts_only_on_a_node_of_the_graph_on_screen(found: Circuit) -> None:
    def click(**fields: object) -> str | None:
        return read_choice(json.dumps(fields), "this", found)

    assert click(of="this", node=1) == found.nodes[1].name
    for wrong in (-1, len(found.nodes)):
        assert click(of="this", node=wrong) is None
    assert click(of="another", node=1) is None
