"""The circuit of a guess as a graph: tokens from left to right, layers upwards, each edge from a part to one that reads it.

Hovering and walking with the keyboard happen in the browser; Python is told only which node was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read
from gptviz.interp.explaining.circuit import Circuit, Node

_mount = register(Path(__file__).parent)


def payload(
    found: Circuit,
    label: Callable[[int], str],
    *,
    of: str,
    title: str,
    model: str,
    code: str,
    opened: str = "",
    spaced: bool = False,
    settings: Sequence[str] = (),
) -> bytes:
    """The bytes that the browser gets.

    Args:
        found: the circuit.
        label: the visible form of a token.
        of: identifies the graph: a click that was made on another one is refused.
        title: of pictures.
        model: the name of the model, for pictures.
        code: the lines of gptviz that compute the same.
        opened: the name of the node that is open.
        spaced: whether tokens stand apart in a text.
        settings: the choices of the reader, a phrase each, for pictures.
    """
    nodes = list(found.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    against = None if found.against is None else label(found.against)
    header: dict[str, Any] = {
        "of": of,
        "title": title,
        "model": model,
        "tokens": [label(i) for i in found.ids],
        "spaced": spaced,
        "settings": list(settings),
        "share": found.share,
        "answer": label(found.token),
        "against": against,
        "nodes": [_node(node, found) for node in nodes],
        "edges": [
            {"from": number[edge.source], "to": number[edge.target], "kind": edge.kind, "value": edge.value, "share": edge.share}
            for edge in found.edges
        ],
        "code": code,
        "opened": next((i for i, node in enumerate(nodes) if node.name == opened), None),
    }
    return pack(header)


def _node(node: Node, found: Circuit) -> dict[str, Any]:
    unit = node.unit
    part = "logit" if unit is None else unit.part
    # Rows from the bottom: positions, tokens, then attention and MLP of each block, then the logit.
    row = {"positions": 0, "embed": 1}.get(part, -1)
    if unit is not None and unit.block is not None:
        row = 2 + 2 * unit.block + (part == "mlp")
    return {
        "name": node.name,
        "part": part,
        "title": "logit" if unit is None else unit.title,
        "place": node.position,
        "row": row,
        "index": None if unit is None else unit.index,
        "block": None if unit is None else unit.block,
        "value": found.given[node],
    }


def circuit_graph(data: bytes, found: Circuit, *, of: str, key: str, on_open: Callable[[str], None]) -> None:
    """Show a payload; `on_open` is called with the name of a node that was clicked."""

    def answer() -> None:
        node = chosen(st.session_state[key].get("open"), of, found)
        if node is not None:
            on_open(node)

    _mount(key=key, data=data, on_open_change=answer)


def chosen(value: object, of: str, found: Circuit) -> str | None:
    """The name of the node in an event from the browser; None if it is stale or not what this view sends."""
    fields = read(value, of=of, node=range(len(found.nodes)))
    return None if fields is None else found.nodes[fields["node"]].name
