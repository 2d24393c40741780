"""What an address may say of a view: Python, which answers the command line, refuses what the view's script refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gptviz.address_values import Values
from gptviz.components import attention_explorer, generation_tree, lens_grid, model_map, sampling_ledger
from gptviz.components.attention_explorer import Size
from gptviz.interp.anatomy import anatomy
from tests.components.test_attention_explorer import heads
from tests.tiny import tiny

COMPONENTS = Path(attention_explorer.__file__).parents[1]
TEXTS = (
    "",
    "0",
    "1",
    "2",
    "3",
    "5",
    "99",
    "-1",
    "1.5",
    "0.04",
    "1e-1",
    "x",
    "one",
    "all",
    "1.2 0.3",
    "0.2",
    "9.9",
    "in",
    "pattern",
)
TEXTS = (*TEXTS, "rest", "rollout", "spread", "true", "True", "FALSE", "All, by vocabulary", "rank", "probability", "100", "101")


def in_node(script: str) -> Any:
    """What a script prints as JSON; modules of the views are imported by their names below `gptviz/components`."""
    if shutil.which("node") is None:
        pytest.skip("node is not on this machine")
    command = ["node", "--input-type=module", "-e", script.replace("@/", f"{COMPONENTS.as_uri()}/")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def refused(values: dict[str, Values]) -> dict[str, list[str]]:
    return {key: [text for text in TEXTS if not each.has(text)] for key, each in values.items()}


@pytest.mark.parametrize("without_first", [False, True])
def test_the_attention_explorer(without_first: bool):
    shown = heads()
    shown = replace(shown, without_first=shown.thumbnails if without_first else None)
    size: Size = shown.size
    numbers = {
        "n_block": 2,
        "n_head": size.n_head,
        "nQuery": size.queries,
        "nKey": size.keys,
        "facts": list(shown.facts),
        "arrays": {"rollout": 1} | ({"without first": 1} if without_first else {}),
        "start": {"block": 0, "head": 0},
    }
    said = in_node(f"""
        import {{ KEYS, takeOver, usualChoice }} from "@/attention_explorer/choice.js";
        const numbers = {{ ...{json.dumps(numbers)}, place: () => 0 }};
        const refused = (key, text) => takeOver(usualChoice(numbers), {{ [key]: text }}, numbers).length > 0;
        const texts = {json.dumps(TEXTS)};
        console.log(JSON.stringify(Object.fromEntries(KEYS.map((key) => [key, texts.filter((text) => refused(key, text))]))));
    """)
    assert refused(attention_explorer.address(shown)) == said


@pytest.mark.parametrize("size", [65, 2_000])
def test_the_sampling_ledger(size: int):
    said = in_node(f"""
        globalThis.location = {{ search: "", pathname: "/" }};
        const {{ CHOICES, OF_THE_DRAW }} = await import("@/sampling_ledger/choices.js");
        const texts = {json.dumps(TEXTS)};
        const refused = ({{ read, possible }}) => texts.filter((text) => !possible(read(text), {size}));
        const all = Object.fromEntries(Object.entries(CHOICES).map(([key, one]) => [key, refused(one)]));
        console.log(JSON.stringify([all, OF_THE_DRAW]));
    """)
    assert refused(sampling_ledger.address(size, draws=True)) == said[0]
    without = sampling_ledger.address(size, draws=False)
    assert without.keys() == said[0].keys() - set(said[1])


def test_the_lens_the_map_and_the_tree():
    colours = in_node("""
        const { COLOURS } = await import("@/lens_grid/cells.js");
        console.log(JSON.stringify(Object.keys(COLOURS)));
    """)
    assert list(lens_grid.COLOURS) == colours
    keys = in_node("""
        import { KEYS } from "@/model_map/opened.js";
        console.log(JSON.stringify(KEYS));
    """)
    values = model_map.address(anatomy(tiny(n_layer=2), 4))
    assert list(values) == keys
    assert values["block"].has("1")
    assert not values["block"].has("2")
    assert values["box"].has("blocks.1.attention.pattern")
    (key,) = generation_tree.address(2, 3)
    assert f'IN_ADDRESS = "{key}"' in (COMPONENTS / "generation_tree" / "attention.js").read_text(encoding="utf-8")
