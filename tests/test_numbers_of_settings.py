"""Numbers that no setting can be are refused by a sentence that names them, before anything is
computed: in the library, in edits, on the command line and in addresses.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gptviz
from gptviz.interp.changing.edit import MOST_NUMBER
from gptviz.interp.changing.edits import edit
from gptviz.language_model import LanguageModel
from gptviz.runs import checkpoints
from gptviz.settings.fields import FieldInfo, parameter_infos
from tests.command_line import Capture, error
from tests.tiny import TinyModel, tiny

NO_NUMBERS: tuple[Any, ...] = (math.nan, math.inf, 2**70, -(2**70), 1e30, "7", True)


def settings(*kinds: str) -> Iterator[tuple[str, FieldInfo]]:
    """Each method with each of its settings of these kinds."""
    for method in dir(LanguageModel):
        function = getattr(LanguageModel, method)
        if callable(function) and not method.startswith("_"):
            for info in parameter_infos(inspect.unwrap(function)).values():
                if info.kind in kinds and info.name != "ids":
                    yield method, info


@pytest.mark.parametrize(("method", "info"), [*settings("whole", "number")])
def test_every_number_of_every_method_is_checked_before_anything_is_computed(
    method: str, info: FieldInfo
) -> None:
    beyond = [info.low - 1] if info.low is not None else []
    beyond += [info.high + 1] if info.high is not None else []
    wrong = [*NO_NUMBERS, *beyond, *([1.5] if info.kind == "whole" else [])]
    if info.high is None:
        wrong = [one for one in wrong if not isinstance(one, int) or isinstance(one, bool)]
        wrong = [one for one in wrong if info.kind == "whole" or one != 1e30]
    for value in wrong:
        _refuses(method, info.name, value)


@pytest.mark.parametrize(("method", "info"), [*settings("choice")])
def test_every_word_of_every_method_is_one_of_its_choices(method: str, info: FieldInfo) -> None:
    for value in ("nosuch", "", info.choices[0].upper() + "x", 3):
        _refuses(method, info.name, value, f"one of {', '.join(info.choices)}$")


def _refuses(method: str, name: str, value: object, why: str = "") -> None:
    # There is no model that could compute, and other arguments are missing.
    with pytest.raises(ValueError, match=rf"^{name} is {re.escape(repr(value))}; it must be {why}"):
        getattr(LanguageModel, method)(None, **{name: value})


def test_what_depends_on_the_model_is_refused_by_the_method(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model(context_length=32))
    lens = lm.lens("the fox")
    beyond = 10**9
    for ask in (
        lambda: lm.course(lens, beyond, 0),
        lambda: lm.course(lens, 0, -beyond),
        lambda: lm.course(lens, 0, 0, beyond),
        lambda: lm.costs(context=beyond),
        lambda: lm.circuit("the fox", share=math.nan),
        lambda: lm.learning_step("the fox", "embed.weight", (beyond, 0)),
        lambda: lm.swap("blocks.0.mlp", 1, 2, beyond),
        lambda: lm.unit_set("the fox", "blocks.0.mlp.neuron.1", beyond),
        lambda: lm.fit_dictionary(0, 1_000_000, text="the quick brown fox " * 20, k=10**6 + 1),
    ):
        with pytest.raises(ValueError, match=r"1000000000|1e\+09|nan|1000001"):
            ask()


def test_a_dictionary_that_does_not_fit_in_memory_is_refused(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = gptviz.load(tiny_model(context_length=32))
    monkeypatch.setattr("gptviz.interp.dictionaries.fitting.room", lambda needed: 10_000)
    with pytest.raises(ValueError, match="a dictionary of 1,000 features takes .* is free"):
        lm.fit_dictionary(0, 1_000, text="the quick brown fox " * 20)


@given(
    unit=st.sampled_from(["blocks.0.mlp.neuron.3", "direction.a-1f0c2a9b", "adapter"]),
    number=st.floats().map(repr) | st.integers().map(str) | st.text(max_size=8),
)
def test_the_number_of_an_edit_is_within_its_range_or_refused(unit: str, number: str) -> None:
    try:
        made = edit(f"{unit}={number}", tiny())
    except ValueError as refusal:
        assert "\n" not in str(refusal)
        within = 10 if unit == "adapter" else 100_000
        assert f"a number from -{within:,} to {within:,}" in str(refusal)
    else:
        assert isinstance(made.to, str) or abs(made.to) <= MOST_NUMBER


@pytest.mark.parametrize("number", ["1e30", "nan", "inf", "-1e999", "100001", "1_0", "\u0661"])
def test_evaluate_refuses_the_number_of_an_edit_and_says_nothing_of_the_weights(
    number: str, tiny_model: TinyModel, capsys: Capture
) -> None:
    tiny_model()
    said = error(
        capsys, "evaluate", "tiny", "--corpus", "python-reference", "--without",
        f"blocks.0.mlp.neuron.3={number}",
    )  # fmt: skip
    assert "a number from -100,000 to 100,000" in said
    assert "weights" not in said


def test_numbers_that_overflow_under_edits_are_said_of_the_edits(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model(residual="plain", n_layer=2, norm_bias=False, final_norm=False)
    folder = checkpoints.find("tiny")
    lm = gptviz.load("tiny")
    for name, weight in lm.model.named_parameters():
        if name.endswith("mlp.down.weight"):
            weight.data *= 1e4
    checkpoints.write_weights(folder / "model.safetensors", lm.model)
    (tmp_path / "text").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    said = error(
        capsys, "evaluate", "tiny", "--corpus", str(tmp_path / "text"), "--without",
        "blocks.1.mlp.neuron.3=99999",
    )  # fmt: skip
    assert "with these edits, which make its numbers overflow: choose smaller ones" in said
