"""The engine: by hand where asked, else chosen by a probe that changes nothing, and always one that
works.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from torch import nn

from gptviz.data.batches import Data
from gptviz.model import Transformer
from gptviz.train import engine
from gptviz.train.engine import WORTH_COMPILING, Engine, choose_engine, compiler_missing
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from tests.small_runs import data, fresh, recipe, same, weights

LONG = 10**9  # steps

Times = Callable[[dict[tuple[bool, bool], float | Exception]], None]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    """Says how many seconds a step takes by (bfloat16, compiled), in place of a clock; where
    nothing is said, none is taken.
    """

    def say(table: dict[tuple[bool, bool], float | Exception]) -> None:
        def told(
            model: Transformer,
            data: Data,
            recipe: Recipe,
            bfloat16: bool,
            *,
            compiled: bool,
            meanwhile: Callable[[], None],
        ) -> float:
            answer = table[bfloat16, compiled]
            if isinstance(answer, Exception):
                raise engine._ProbeError from answer
            return answer

        monkeypatch.setattr(engine, "_seconds_per_step", told)
        monkeypatch.setattr(engine, "compiler_missing", lambda: None)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})

    return say


@pytest.mark.parametrize(("precision", "bfloat16"), [("float32", False), ("bfloat16", True)])
def test_what_is_set_by_hand_is_taken_without_a_probe(
    precision: str, bfloat16: bool, times: Times
) -> None:
    times({})
    assert choose_engine(fresh(), data(), recipe(precision=precision, compile="no")) == Engine(
        bfloat16, False
    )


@pytest.mark.parametrize(("float32", "bfloat16"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_precision_is_taken_and_both_times_are_told(
    float32: float, bfloat16: float, times: Times
) -> None:
    times({(False, False): float32, (True, False): bfloat16})
    chosen = choose_engine(fresh(), data(), recipe(precision="auto"))
    assert chosen.bfloat16 is (bfloat16 < float32)
    assert chosen.seconds_per_step == 1.0
    assert (
        f"float32 {1_000 * float32:,.1f} ms a step, bfloat16 {1_000 * bfloat16:,.1f} ms"
        in chosen.why
    )


@pytest.mark.parametrize("capabilities", [{}, {"avx512_bf16": False}])
def test_bfloat16_is_not_tried_where_the_processor_lacks_it(
    capabilities: dict[str, bool], times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    times({(False, False): 1.0})
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    chosen = choose_engine(fresh(), data(), recipe(precision="auto", compile="auto"))
    assert not chosen.bfloat16
    assert "bfloat16" not in chosen.why


def test_a_short_run_is_not_compiled_and_a_long_one_is_where_that_is_faster(times: Times) -> None:
    times({(False, False): 1.0, (False, True): 0.5})
    short, long = (
        choose_engine(fresh(), data(), recipe(compile="auto", steps=steps)) for steps in (10, LONG)
    )
    assert not short.compiled
    assert "the run takes about 10 s, too short to be worth it" in short.why
    assert (long.compiled, long.seconds_per_step) == (True, 0.5)
    minutes = [
        choose_engine(
            fresh(), data(), recipe(compile="auto", steps=None, minutes=WORTH_COMPILING / 60 * x)
        )
        for x in (0.9, 1.1)
    ]
    assert [each.compiled for each in minutes] == [False, True]
    times({(False, False): 1.0, (False, True): 1.5})
    slower = choose_engine(fresh(), data(), recipe(compile="auto", steps=LONG))
    assert (slower.compiled, slower.seconds_per_step) == (False, 1.0)
    assert "not compiled: that takes 1,500.0 ms a step" in slower.why
    assert choose_engine(fresh(), data(), recipe(compile="yes", steps=3)).compiled


@pytest.mark.parametrize("setting", ["auto", "yes"])
def test_a_compiler_that_fails_is_said_and_the_run_goes_on_without(
    setting: str, times: Times
) -> None:
    times({(False, False): 1.0, (False, True): RuntimeError("ld: cannot find -lm\n")})
    chosen = choose_engine(fresh(), data(), recipe(compile=setting, steps=LONG))
    assert chosen == Engine(
        False,
        False,
        "float32 1,000.0 ms a step; not compiled: compiling failed (RuntimeError)",
        1.0,
    )


@pytest.mark.parametrize("lacking", ["PATH", "CXX"])
def test_without_a_compiler_it_says_so_and_trains(
    lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler") if lacking == "CXX" else monkeypatch.delenv(
        "CXX", raising=False
    )
    model = fresh()
    chosen = choose_engine(model, data(), recipe(compile="yes", steps=3))
    assert re.search(
        r"not compiled: there is no C\+\+ compiler \(\S+\) on this machine", chosen.why
    )
    assert not chosen.compiled
    assert chosen.forward(model) is model
    assert (
        list(Trainer(model, data(), recipe(steps=3), forward=chosen.forward(model)))[-1].step == 3
    )


def test_a_compiler_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "my-c++.exe"  # Windows finds a program by its ending
    compiler.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", compiler.name)
    assert compiler_missing() is None


def test_a_model_really_compiled_that_fails_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(nn.Module):
        def forward(self, ids: torch.Tensor) -> None:
            raise RuntimeError("the backend gives up")

    monkeypatch.setattr(engine, "compiler_missing", lambda: None)
    monkeypatch.setattr(torch, "compile", lambda model: Failing())
    chosen = choose_engine(fresh(), data(), recipe(compile="yes"))
    assert not chosen.compiled
    assert "compiling failed (RuntimeError)" in chosen.why


class GivenUpError(Exception):
    """What a caller raises that wants no engine any more."""


def test_a_choice_is_given_up_while_its_step_still_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = Event()
    told = []
    advance = Trainer.advance
    monkeypatch.setattr(Trainer, "advance", lambda trainer: (go_on.wait(), advance(trainer))[1])

    def meanwhile(doing: str) -> None:
        told.append(doing)
        if len(told) == 3:
            raise GivenUpError

    with pytest.raises(GivenUpError):
        choose_engine(
            fresh(), data(), recipe(precision="bfloat16", compile="auto"), meanwhile=meanwhile
        )
    assert not go_on.is_set()
    assert told == ["timing steps in bfloat16"] * 3
    go_on.set()
    # The next choice waits for the step that is left over, which draws from the same random
    # numbers.
    assert choose_engine(fresh(), data(), recipe(precision="bfloat16", compile="auto")).bfloat16
    assert not engine._given_up


def test_a_compiled_model_takes_the_same_steps_with_the_same_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compile_ = torch.compile
    # Captured as for a machine, but run by Python: no compiler is needed, and no half minute.
    monkeypatch.setattr(torch, "compile", lambda model: compile_(model, backend="eager"))
    plain = fresh()
    compiled = fresh()
    curves = []
    for model, chosen in ((plain, Engine()), (compiled, Engine(compiled=True))):
        curves.append(
            [
                event.loss
                for event in Trainer(model, data(), recipe(steps=5), forward=chosen.forward(model))
            ]
        )
    assert curves[1] == pytest.approx(curves[0], rel=1e-6)
    for name, value in weights(plain).items():
        torch.testing.assert_close(
            compiled.get_parameter(name).detach(), value, rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("precision", ["auto", "bfloat16", "float32"])
def test_choosing_leaves_the_model_untouched(precision: str) -> None:
    model = fresh(dropout=0.5).eval()
    before = weights(model)
    chosen = choose_engine(model, data(), recipe(precision=precision, compile="auto"))
    assert same(weights(model), before)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert 0 < chosen.seconds_per_step < 10
    assert precision == "auto" or chosen.bfloat16 is (precision == "bfloat16")


@pytest.mark.parametrize("of", [Engine(), Engine(True, True, "measured", 0.25)])
def test_an_engine_survives_json(of: Engine) -> None:
    assert Engine.from_dict(json.loads(json.dumps(of.to_dict()))) == of


@pytest.mark.parametrize(
    "content",
    [
        {"bfloat16": "x"},
        {"compiled": 1},
        {"speed": 3},
        [1],
        5,
        {"why": None},
        {"seconds_per_step": "x"},
    ],
)
def test_what_is_no_engine_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="this does not describe an engine"):
        Engine.from_dict(content)
