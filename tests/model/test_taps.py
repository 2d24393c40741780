"""Taps: what they see is what the pass uses, what they return is what it goes on with, and their
names are the glossary's.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
import torch

import gptviz.model
from gptviz.model import GLOSSARY, Config, Edit, Record
from tests.tiny import scrambled, some_ids, tiny

SOURCES = sorted(Path(gptviz.model.__file__).parent.rglob("*.py"))


def emitted(config: Config) -> list[str]:
    names: list[str] = []

    class Noting(Record):
        def __call__(self, name: str, value: torch.Tensor) -> torch.Tensor:
            names.append(name)
            return value

    scrambled(config)(some_ids(), some_ids() if config.n_encoder_layer else None, tap=Noting())
    return names


def tapped_literals(tree: ast.AST) -> list[str]:
    """The names in calls `tap("name", value)`; a call with anything but a literal name is an
    error.
    """
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tap":
            assert isinstance(node.args[0], ast.Constant), ast.unparse(node)
            names.append(node.args[0].value)
    return names


def test_the_code_taps_the_names_of_the_glossary_and_no_other_and_each_once_per_class() -> None:
    found: set[str] = set()
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = tapped_literals(node)
                assert len(names) == len(set(names)), (file.name, node.name)
                found |= set(names)
    assert found == set(GLOSSARY)


def test_every_word_of_the_glossary_is_emitted_by_a_model_and_every_name_once_per_pass() -> None:
    pair = tiny(n_encoder_layer=1, embed_norm=True)
    names = emitted(pair)
    labels = [name for head in ("mean", "first") for name in emitted(tiny(head=head, n_label=2))]
    chosen = emitted(tiny(mlp="experts", smear=3, backout=True))
    assert {name.rpartition(".")[2] for name in [*names, *labels, *chosen]} == set(GLOSSARY)
    assert Counter(names).most_common(1)[0][1] == 1


def test_names_are_the_paths_a_reader_guesses() -> None:
    assert {"embed", "positions", "final_norm", "logits"} < set(emitted(tiny()))
    for name in (
        "resid_pre",
        "attention.q",
        "attention.pattern",
        "attention.out",
        "resid_mid",
        "mlp.neurons",
        "resid_post",
    ):
        assert f"blocks.1.{name}" in emitted(tiny())


def test_a_pattern_of_names_records_those_alone_and_one_may_be_given_bare() -> None:
    for names in (["blocks.*.attention.pattern", "logits"], "blocks.*.attention.pattern"):
        record = Record(names)
        scrambled(tiny())(some_ids(), tap=record)
        expected = ["blocks.0.attention.pattern", "blocks.1.attention.pattern", "logits"]
        assert list(record.values) == expected[: 3 if isinstance(names, list) else 2]


@pytest.mark.parametrize("name", [name for name in emitted(tiny()) if name != "logits"])
def test_an_edit_is_what_the_pass_goes_on_with_and_what_a_record_behind_it_sees(name: str) -> None:
    model = scrambled(tiny())
    record = Record()
    edited = model(some_ids(), tap=Edit({name: lambda value: value.flip(-1)}, record))
    plain = Record()
    model(some_ids(), tap=plain)
    later = list(plain.values)[list(plain.values).index(name) + 1 :]
    assert torch.equal(record.values[name], plain.values[name].flip(-1))
    assert not torch.isclose(edited, plain.values["logits"]).all()
    for before in set(plain.values) - {name, *later}:
        assert torch.equal(record.values[before], plain.values[before]), before


def test_an_edit_of_the_logits_is_what_the_model_returns() -> None:
    model = scrambled(tiny())
    assert (model(some_ids(), tap=Edit({"logits": lambda logits: logits * 0})) == 0).all()


@pytest.mark.parametrize(
    "name", ["embed", "positions", "blocks.0.attention.v", "blocks.1.resid_pre"]
)
def test_an_edit_in_place_reaches_neither_the_weights_nor_what_was_recorded_before(
    name: str,
) -> None:
    model = scrambled(tiny())
    record = Record()
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    plain = Record()
    with torch.inference_mode():
        model(some_ids(), tap=plain)
        model(some_ids(), tap=Edit({name: lambda value: value.zero_()}, record))
    assert (record.values[name] == 0).all()
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    if name == "blocks.1.resid_pre":
        assert torch.equal(
            record.values["blocks.0.resid_post"], plain.values["blocks.0.resid_post"]
        )


def test_a_hook_of_torch_sees_what_a_part_computes_in_evaluation_too() -> None:
    model = scrambled(tiny()).eval()
    seen = []
    hook = model.blocks[0].mlp.up.register_forward_hook(
        lambda part, given, result: seen.append(result)
    )
    record = Record(("blocks.0.mlp.neurons",))
    model(some_ids(), tap=record)
    hook.remove()
    model(some_ids())
    [result] = seen
    assert torch.equal(
        model.blocks[0].mlp.activation(result), record.values["blocks.0.mlp.neurons"]
    )
