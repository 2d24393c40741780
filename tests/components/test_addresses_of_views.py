"""What an address may say of a view: Python, which answers the command line, and the view's script
read one declaration alike.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gptviz.components import (
    attention_explorer,
    circuit_graph,
    generation_tree,
    lens_grid,
    model_map,
    sampling_ledger,
)
from gptviz.interp.reading.anatomy import anatomy
from gptviz.settings.address_values import Values, declare_values, real_number
from tests.components.test_attention_explorer import heads
from tests.tiny import tiny

COMPONENTS = Path(attention_explorer.__file__).parents[1]
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "5",
    "99",
    "100",
    "101",
    "-1",
    "1.5",
    "0.04",
    "1e-1",
    "3.0",
    "00002",
    "+1",
    "-0",
    ".5",
    "1.",
)
NO_NUMBERS = (
    "inf",
    "nan",
    "1_0",
    " 1",
    "1 ",
    "1\n",
    "0x1",
    "٣",
    "²",
    "1" * 9,
    "1" * 5_000,
    "1E0",
    "1e400",
    "-1e-400",
)
PAIRS = (
    "1.2 0.2",
    "1.2 0.3",
    "0.2",
    "9.9",
    "0.1 ",
    " 0.1",
    "0.1  0.2",
    "0.1 0.1",
    "0.00001",
    "1.٣",
)
NAMES = (
    "one",
    "all",
    "in",
    "pattern",
    "rest",
    "rollout",
    "spread",
    "All, by vocabulary",
    "rank",
    "probability",
    "embed",
)
BOXES = ("encoder.0", "blocks.1.attention.pattern", "true", "True", "FALSE")
PLACES = (
    "embed@0",
    "embed@3 blocks.0.mlp@1",
    "embed@4",
    "embed@1 embed@1",
    "embed @1",
    "mlp@1",
    "embed@00001",
    "embed@٣",
    "@1",
)
GROUPS = (
    *(
        "a:embed@0",
        "a:embed@0 embed@1;b:embed@2",
        "a:embed@0;b:embed@0",
        "a:",
        ":embed@0",
        "a;embed@0",
        "a:embed@0;",
        "a: embed@0",
    ),
    *(f"{24 * letter}:embed@0" for letter in ("x", "𝔸", "<")),
    *("x" * 25 + ":embed@0", "a\nb:embed@0", "a:b:embed@0", "a:embed@0\n"),
)
ODD = ("", "x", "__proto__", "constructor", "<b>", "null", "undefined", "[object Object]", "\ud800")
TEXTS = (*NUMBERS, *NO_NUMBERS, *PAIRS, *NAMES, *BOXES, *PLACES, *GROUPS, *ODD)


DRAWN = anatomy(tiny(n_layer=2, n_encoder_layer=1), 4, 3)


def in_node(script: str) -> Any:
    """What a script prints as JSON; modules of the views are imported by their names below
    `gptviz/components`.
    """
    if shutil.which("node") is None:
        pytest.skip("node is not on this machine")
    command = ["node", "--input-type=module", "-e", script.replace("@/", f"{COMPONENTS.as_uri()}/")]
    return json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    )


def addresses() -> Iterator[tuple[str, dict[str, Values]]]:
    """What the address may say of each view, of small and large models."""
    shown = heads()
    yield "attention_explorer", attention_explorer.address(shown)
    yield (
        "attention_explorer without the first",
        attention_explorer.address(replace(shown, without_first=shown.thumbnails)),
    )
    yield "circuit_graph", circuit_graph.address(["embed", "blocks.0.mlp"], 4)
    yield "lens_grid", lens_grid.address(["embed", "blocks.0.mlp"], range(2, 6))
    yield "model_map", model_map.address(DRAWN)
    yield "generation_tree", generation_tree.address(2, 4)
    for size in (65, 2_000):
        yield f"sampling_ledger of {size}", sampling_ledger.address(size, draws=True)
    yield "sampling_ledger without a draw", sampling_ledger.address(65, draws=False)
    yield "numbers", {"small": real_number(-2, 0.5), "far": real_number(-1e300, 1e300)}


ADDRESSES = dict(addresses())


@pytest.mark.parametrize("view", ADDRESSES)
def test_a_view_refuses_in_the_browser_what_the_command_line_refuses(view: str) -> None:
    taken = in_node(f"""
        globalThis.location = {{ search: "", pathname: "/" }};
        const {{ valuesIn }} = await import("@/kit/values.js");
        const declared = {json.dumps(declare_values(ADDRESSES[view], {}))};
        const taken = (key, text) => Object.hasOwn(valuesIn(declared, {{ [key]: text }}).values, key);
        const texts = {json.dumps(TEXTS)};
        console.log(JSON.stringify(Object.fromEntries(
            Object.keys(declared).map((key) => [key, texts.filter((text) => taken(key, text))]))));
    """)
    assert taken == {
        key: [text for text in TEXTS if each.has(text)] for key, each in ADDRESSES[view].items()
    }


@pytest.mark.parametrize(
    ("view", "usual"),
    [
        ("sampling_ledger of 65", sampling_ledger.USUAL),
        ("model_map", model_map.default_boxes(DRAWN)),
    ],
)
def test_what_is_usual_is_one_of_the_values(view: str, usual: dict[str, Any]) -> None:
    asked = {key: str(value) for key, value in usual.items() if value is not None}
    assert [key for key, text in asked.items() if not ADDRESSES[view][key].has(text)] == []


def test_every_view_that_has_an_address_is_tried() -> None:
    scripts = [script for script in COMPONENTS.glob("*/*.js") if script.stem == script.parent.name]
    views = [
        script.stem
        for script in scripts
        if hasattr(import_module(f"gptviz.components.{script.stem}"), "address")
    ]
    assert sorted(views) == sorted({view.split()[0] for view in ADDRESSES} - {"numbers"})


def test_an_address_takes_what_there_is() -> None:
    assert ADDRESSES["model_map"]["block"].has("encoder.0")
    taken = {
        key: [text for text in (*PLACES, *GROUPS) if each.has(text)]
        for key, each in ADDRESSES["circuit_graph"].items()
    }
    assert taken["pinned"] == ["embed@0", "embed@3 blocks.0.mlp@1", "embed@00001"]
    assert taken["groups"] == [*GROUPS[:2], *GROUPS[8:11], "a\nb:embed@0"]
    assert ADDRESSES["model_map"]["box"].has("blocks.1.attention.pattern")
    assert ADDRESSES["generation_tree"]["attended"].has("1.3")
    assert ADDRESSES["attention_explorer"]["heads"].has("1.2 0.2")
    assert ADDRESSES["attention_explorer without the first"]["show"].has("rest")
    assert not ADDRESSES["attention_explorer"]["show"].has("rest")
    of_the_draw = (
        ADDRESSES["sampling_ledger of 65"].keys()
        - ADDRESSES["sampling_ledger without a draw"].keys()
    )
    assert of_the_draw == {"temperature", "top_k", "top_p", "seed"}


def test_a_view_offers_the_choices_that_the_address_has() -> None:
    """A view says what each choice means: those of Python and those of its script are the same."""
    offered = in_node("""
        globalThis.location = { search: "", pathname: "/" };
        const { COLOURS } = await import("@/lens_grid/cells.js");
        const { CHOICES, ORDERS, OF_THE_DRAW } = await import("@/sampling_ledger/choices.js");
        const { SHOWS } = await import("@/attention_explorer/settings.js");
        const lists = { colours: COLOURS, choices: CHOICES, orders: ORDERS, shows: SHOWS };
        const named = Object.fromEntries(Object.entries(lists).map(([name, one]) => [name, Object.keys(one)]));
        console.log(JSON.stringify({ ...named, draw: OF_THE_DRAW }));
    """)
    ledger = ADDRESSES["sampling_ledger of 65"]
    assert offered["colours"] == list(lens_grid.COLOURS)
    assert offered["choices"] == list(ledger)
    assert offered["orders"] == list(ledger["tokens"].names)
    assert set(offered["shows"]) >= set(
        ADDRESSES["attention_explorer without the first"]["show"].names
    )
    assert (
        set(offered["draw"]) == ledger.keys() - ADDRESSES["sampling_ledger without a draw"].keys()
    )
