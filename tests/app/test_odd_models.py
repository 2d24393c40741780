"""Every page with models that nobody has in mind: damaged ones, and ones that lack a part."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.records import classify, heads
from tests.app.conftest import OF_KIND
from tests.app.opening import opened, says
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("one_of_each")
# The pages about the model that is chosen above: those where runs are begun and compared name a
# damaged one in their own ways.
ABOUT_A_MODEL = [page for page in PAGES.values() if page.has_model and page.group != "Your models"]
TORN = {"model.safetensors": b"torn", "config.json": b'{"format": 99}', "tokenizer.json": b"["}


@pytest.mark.parametrize(
    ("page", "files"),
    [
        *((page, [file]) for page, file in zip(ABOUT_A_MODEL, cycle(TORN), strict=False)),
        *(pytest.param(page, list(TORN), marks=pytest.mark.full) for page in ABOUT_A_MODEL),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_a_damaged_model_is_an_error_that_names_it_and_the_page_stays(
    page: Page, files: list[str], tiny_model: TinyModel
) -> None:
    for file in files:
        (tiny_model("hurt") / file).write_bytes(TORN[file])
        at = opened(page.path, model="hurt")
        assert f"hurt/{file}" in at.error[0].value.replace("\\", "")
    at.selectbox(key="model").set_value(OF_KIND[page.kinds[0]]).run()
    assert not at.error


# What a page says of a model whose logits are no numbers; the others show as much of it as there
# is.
NO_NUMBERS = {
    **dict.fromkeys(
        ("next_token", "lens", "circuit"),
        "writer: the model's logits are not numbers: its weights or edits are so large that they "
        "overflow",
    ),
    "patching": "writer: its logits are not all numbers",
    "context": "writer: the probabilities of this model are not numbers",
    "attribution": "The weights or edits of this model are so large that they overflow",
    "neurons": "are not numbers: its weights",
    "stream": "writer: the vectors of its stream are not all numbers: its weights or edits are so "
    "large that they overflow",
    **dict.fromkeys(("home", "heads"), ""),
}


@pytest.mark.parametrize(("name", "said"), NO_NUMBERS.items(), ids=NO_NUMBERS)
def test_a_model_whose_logits_are_no_numbers_is_named_and_the_page_stays(
    name: str, said: str
) -> None:
    folder = checkpoints.find("writer")
    weights = load_file(folder / "model.safetensors")
    # finite, but no product of them is
    weights["blocks.0.mlp.up.weight"][:] = weights["blocks.0.mlp.down.weight"][:] = 3e38
    save_file(weights, folder / "model.safetensors")
    assert said in says(opened(PAGES[name].path, model="writer"))


LACKING: list[dict[str, Any]] = [{"n_layer": 0}, {"d_mlp": 0}, {"positions": "none"}]
TWO_LACKING: list[dict[str, Any]] = [
    {"n_layer": 0, "positions": "none"},
    {"d_mlp": 0, "positions": "none"},
]


@pytest.mark.parametrize(
    "page", [page for page in ABOUT_A_MODEL if "decoder" in page.kinds], ids=lambda page: page.name
)
@pytest.mark.parametrize(
    "changes", [*TWO_LACKING, *(pytest.param(one, marks=pytest.mark.full) for one in LACKING)]
)
def test_a_model_that_lacks_a_part_is_shown(
    page: Page, changes: dict[str, Any], tiny_model: TinyModel
) -> None:
    tiny_model("lacking", text="the fox", **changes)
    at = opened(page.path, model="lacking", prompt="the fox")
    assert not at.error
    # Without an MLP there is little in a graph: that its check disagrees is a result, not a fault.
    assert not [one for one in at.warning if not one.value.startswith("**The check disagrees")]


# What a page says of a model that lacks what it is about: the page, the kind of model, what the
# model lacks, and what is said.
LACKS: list[tuple[str, Kind, dict[str, Any], str]] = [
    ("attention", "decoder", {"n_layer": 0}, "no attention"),
    ("attention", "classifier", {"n_layer": 0}, "no blocks and therefore no attention"),
    ("classify", "classifier", {"n_layer": 0}, "no attention"),
    ("heads", "decoder", {"n_layer": 0}, "no blocks and therefore no attention"),
    ("heads", "decoder", {"n_layer": 1}, "has one block"),
    ("heads", "decoder", {"residual": "none"}, "without residual connections"),
    ("neurons", "decoder", {"n_layer": 0}, "has no blocks"),
    ("neurons", "decoder", {"d_mlp": 0}, "no MLP, and so no neurons"),
    ("patching", "decoder", {"n_layer": 0}, "no blocks"),
    ("switch_off", "decoder", {"n_layer": 0}, "no heads and no MLPs"),
    ("translate", "encoder-decoder", {"n_layer": 0}, "no cross-attention"),
]
# The view in which it is said, where it is not the first.
VIEW = {"classify": classify.ATTENTION, "heads": heads.READS}


@pytest.mark.parametrize(("name", "kind", "changes", "said"), LACKS)
def test_a_model_that_lacks_what_the_page_is_about_is_told_so(
    name: str, kind: Kind, changes: dict[str, Any], said: str, request: pytest.FixtureRequest
) -> None:
    saved = {
        "decoder": "tiny_model",
        "classifier": "tiny_classifier",
        "encoder-decoder": "tiny_pair",
    }[kind]
    request.getfixturevalue(saved)("lacking", **changes)
    view = {"view": VIEW[name]} if name in VIEW else {}
    assert said in says(opened(PAGES[name].path, model="lacking", prompt="the", **view))
