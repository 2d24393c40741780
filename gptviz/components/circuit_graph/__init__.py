"""The circuit of a guess as a graph: tokens from left to right, layers upwards, each edge from a
part to one that reads it.

Hovering, walking with the keyboard, pinning and grouping happen in the browser, which keeps pins
and groups in the address of the page, and makes a file with the graph. Python is told only which
node was opened, and reads such a file (`read_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gptviz.components.kit import pack, register
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.kit.events import read_event
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit, Edge, Node
from gptviz.interp.units.unit import Unit
from gptviz.machine.bounded import parse_json
from gptviz.settings.address_values import Values, at_places, declare_values, groups

_mount = register(Path(__file__).parent)

# What a file with a graph begins with, and bounds of one that is read: values, and characters of
# pins or groups.
FORMAT = "gptviz circuit 1"
MOST_VALUES = 20_000
LONGEST_ARRANGED = 4_000


def payload(
    circuit: Circuit,
    label: Callable[[int], str],
    *,
    of: str,
    title: str,
    model: str,
    code: str,
    opened: str = "",
    spaced: bool = False,
    settings: Sequence[str] = (),
    units: Collection[str] | None = None,
    titles: Mapping[Unit, tuple[str, str]] = MappingProxyType({}),
    choices: Mapping[str, Any] | None = None,
    command: ViewCommand = NO_COMMAND,
    main: Collection[Edge] | None = None,
) -> bytes:
    """The bytes that the browser gets.

    Args:
        label: the visible form of a token.
        of: identifies the graph: a click that was made on another one is refused.
        title: of pictures.
        model: the name of the model, for pictures.
        code: the lines of gptviz that compute the same.
        opened: the name of the node that is open.
        spaced: whether tokens stand apart in a text.
        settings: the choices of the reader, a phrase each, for pictures.
        units: the names of all units of the model, any of which may be pinned; without them, those
            of the graph.
        titles: of features, errors and units with a name of the reader's own, what their box
            says and their title.
        choices: what a file with the graph says of the model, the text and what was chosen, as JSON
            has it.
        command: the pins and groups (`pinned`, `groups`) that the view is asked to show.
        main: the edges that stand out, each with its number; those of the main path unless given.
    """
    nodes = list(circuit.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    against = None if circuit.against is None else label(circuit.against)
    if main is None:
        main = circuit.main_edges
    if units is None:
        units = sorted({node.unit.name for node in nodes if node.unit is not None})
    header: dict[str, Any] = {
        "of": of,
        "title": title,
        "model": model,
        "tokens": [label(i) for i in circuit.ids],
        "spaced": spaced,
        "settings": list(settings),
        "share": circuit.share,
        "answer": label(circuit.token),
        "against": against,
        "nodes": [_node(node, circuit, titles) for node in nodes],
        "edges": [
            {
                "from": number[edge.source],
                "to": number[edge.target],
                "kind": edge.kind,
                "value": edge.value,
                "share": edge.share,
                "main": edge in main,
            }
            for edge in circuit.edges
        ],
        "code": code,
        "opened": next((i for i, node in enumerate(nodes) if node.name == opened), None),
        "format": FORMAT,
        "choices": dict(choices or {}),
        "declared": declare_values(address(units, len(circuit.ids)), {}),
        "asked": dict(command.asked) if command.number else None,
        "number": command.number,
    }
    return pack(header)


def address(units: Collection[str], n_positions: int) -> dict[str, Values]:
    """The choices that the address may hold for the view, by the names of a model's units and the
    length of its text.
    """
    words = "parts of this model at positions of this text, such as blocks.0.mlp@3"
    return {
        "pinned": at_places(units, n_positions, f"{words}, with spaces between", most=MOST_NODES),
        "groups": groups(
            units, n_positions, f"groups of {words}: name:part part;name:part", most=MOST_NODES
        ),
    }


def _node(node: Node, circuit: Circuit, titles: Mapping[Unit, tuple[str, str]]) -> dict[str, Any]:
    unit = node.unit
    part = "logit" if unit is None else unit.part
    # Rows from the bottom: positions, tokens, then attention and MLP of each block, then the logit.
    row = {"positions": 0, "embed": 1}.get(part, -1)
    block = None if unit is None else circuit.block_of(unit)
    if block is not None:
        row = 2 + 2 * block + (part in ("mlp", "dictionary", "missed"))
    says, title = titles.get(unit, ("", "")) if unit is not None else ("", "logit")
    return {
        "name": node.name,
        "part": part,
        "title": title or (unit.title if unit is not None else ""),
        "says": says,
        "place": node.position,
        "row": row,
        "index": None if unit is None else unit.index,
        "value": circuit.given[node],
    }


def circuit_graph(
    data: bytes, circuit: Circuit, *, of: str, key: str, on_open: Callable[[str], None]
) -> None:
    """Show a payload; `on_open` is called with the name of a node that was clicked."""

    def answer(value: object) -> None:
        if (node := read_choice(value, of, circuit)) is not None:
            on_open(node)

    _mount(key=key, data=data, open=answer)


def read_choice(value: object, of: str, circuit: Circuit) -> str | None:
    """The name of the node in an event from the browser; None if it is stale or not what this view
    sends.
    """
    fields = read_event(value, of=of, node=range(len(circuit.nodes)))
    if fields is None:
        return None
    return circuit.nodes[fields["node"]].name


def read_file(content: bytes) -> tuple[dict[str, Any], dict[str, str | None]]:
    """The choices in a file that the view saved, its pins and groups as an address has them; a
    ValueError for other files.
    """
    try:
        file = parse_json(content, MOST_VALUES)
    except ValueError as error:
        raise ValueError(f"it is no saved graph: {error}") from None
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        raise ValueError(f"it is no graph that this page saved: its “format” is not “{FORMAT}”")
    choices = file.get("choices")
    arranged = {key: file.get(key) for key in ("pinned", "groups")}
    if not isinstance(choices, dict):
        raise ValueError("its “choices” are missing: what was chosen on the page")
    for key, value in arranged.items():
        if value is not None and not (isinstance(value, str) and len(value) <= LONGEST_ARRANGED):
            raise ValueError(f"its “{key}” is no text of at most {LONGEST_ARRANGED:,} characters")
    return choices, arranged
