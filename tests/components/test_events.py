"""What the server believes of a click or a message of each view: an event whose fields are all
possible, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gptviz.components import (
    address_button,
    attention_explorer,
    figure_tools,
    generation_tree,
    lens_grid,
    model_map,
    page_helpers,
    sampling_ledger,
    token_strip,
)
from gptviz.components.cell_grid import units as unit_grid
from gptviz.components.lens_grid import LensCell
from gptviz.components.model_map import TensorPage
from gptviz.generate.generation import Generation
from gptviz.generate.tree import ROOT, Tree
from gptviz.interp.units.unit import Unit, heads_and_mlps
from tests.tiny import scrambled, some_ids, tiny

UNITS = heads_and_mlps(tiny())
TREE = Tree(Generation(scrambled(tiny()), some_ids(5, batch=1)))
VOCAB = TREE.generation.model.config.vocab_size
STRIP = (token_strip.Token("a"), token_strip.Token("c"))
LONGER = "x" * (page_helpers.LONGEST + 1)


class Event(NamedTuple):
    """An event that counts.

    Attributes:
        read: reads it as the view does, with what is shown.
        fields: what it carries.
        result: what is read.
        wrong: by field, a value with which it would not count.
    """

    read: Callable[[object], object]
    fields: dict[str, Any]
    result: object
    wrong: dict[str, Any]


EVENTS = {
    "explorer wants": Event(
        lambda e: attention_explorer.read_block(e, "x", 3),
        {"block": 2, "of": "x"},
        2,
        {"block": 3, "of": "y"},
    ),
    "explorer switches": Event(
        lambda e: attention_explorer.read_switch(e, "x", 3, 4),
        {"block": 2, "head": 1, "of": "x"},
        (2, 1),
        {"block": 3, "head": 4, "of": "y"},
    ),
    "explorer switches all": Event(
        lambda e: attention_explorer.read_switch(e, "x", 3, 4),
        {"block": 2, "head": None, "of": "x"},
        (2, None),
        {"block": -1},
    ),
    "tree goes": Event(
        lambda e: generation_tree.place(e, TREE, 7),
        {"number": 7, "at": ROOT},
        ROOT,
        {"number": 6, "at": 10_000},
    ),
    "tree takes": Event(
        lambda e: generation_tree.read_step(e, TREE, 7),
        {"number": 7, "at": ROOT, "token": VOCAB - 1},
        (ROOT, VOCAB - 1),
        {"number": 6, "at": 10_000, "token": VOCAB},
    ),
    "lens": Event(
        lambda e: lens_grid.read_click(e, "text", n_layer=5, n_position=4),
        {"layer": 4, "index": 3, "of": "text"},
        LensCell(4, 3),
        {"layer": 5, "index": 4, "of": "another"},
    ),
    "map guesses": Event(
        lambda e: model_map.read_guess(e, "now", 2),
        {"guess": 1, "text": "now"},
        1,
        {"guess": 2, "text": "then"},
    ),
    "map looks": Event(
        model_map.looked,
        {"box": "embed", "piece": 0, "at": [3, 4]},
        TensorPage("embed", 0, (3, 4)),
        {"box": "x" * 10_000, "piece": -1, "at": ["1"]},
    ),
    "map looks at a scalar": Event(
        model_map.looked,
        {"box": "embed", "piece": 1, "at": []},
        TensorPage("embed", 1, ()),
        {"at": [1, 2, 3, 4]},
    ),
    "ledger": Event(
        lambda e: sampling_ledger.read_choice(e, 4, 3),
        {"token": 2, "generation": 4},
        2,
        {"token": 3, "generation": 3},
    ),
    "strip": Event(
        lambda e: token_strip.read_click(e, 4, STRIP),
        {"at": 1, "generation": 4},
        1,
        {"at": 2, "generation": 3},
    ),
    "units": Event(
        lambda e: unit_grid.read_click(e, "x", UNITS),
        {"name": "blocks.0.attention.head.2", "of": "x"},
        Unit("attention", 0, 2),
        {"name": "blocks.9.mlp", "of": "y"},
    ),
    "figure": Event(figure_tools.read_size, {"size": 2.25}, 2.25, {"size": 0.5}),
    "largest figure": Event(figure_tools.read_size, {"size": 1}, 1.0, {"size": 1e9}),
    "choices": Event(
        lambda e: address_button.read_values(e, ("block", "head")),
        {"block": "1", "head": None},
        {"block": "1"},
        {"block": 1, "head": "x" * (address_button.LONGEST + 1)},
    ),
    "address": Event(
        page_helpers.read_query,
        {"query": "model=bpe&head=2"},
        "model=bpe&head=2",
        {"query": LONGER},
    ),
    "empty address": Event(page_helpers.read_query, {"query": ""}, "", {"query": 2}),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_an_event_counts_if_each_of_its_fields_is_possible(event: Event) -> None:
    for sent in (event.fields, json.dumps(event.fields), event.fields | {"other": 3}):
        assert event.read(sent) == event.result
    for field, value in event.wrong.items():
        assert event.read(event.fields | {field: value}) is None, field
