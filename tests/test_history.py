"""A measure over training on the command line: what it prints is what the library computes."""

from __future__ import annotations

import pytest

import gptviz
from gptviz.__main__ import main
from gptviz.interp.over_training.measures import MEASURES
from gptviz.runs import checkpoints
from tests.command_line import Capture, answered, error, output
from tests.tiny import TinyModel


@pytest.fixture(autouse=True)
def mine(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine", context_length=64)
    for step in (0, 4):
        checkpoints.write_weights(checkpoints.snapshot_path(folder, step), gptviz.load("mine").model)


def test_json_has_the_steps_and_the_values_of_every_series(capsys: Capture) -> None:
    said = answered(capsys, "history", "mine", "--measure", "heads.previous_token")
    found = gptviz.load("mine").over_training("heads.previous_token")
    assert said["steps"] == [0, 4]
    assert {one["name"]: one["values"] for one in said["series"]} == {
        name: found.values[:, i].tolist() for i, name in enumerate(found.series)
    }
    assert said["series"][-1]["name"] == "blocks.1.attention.head.2"


def test_the_table_has_a_line_for_every_snapshot_and_list_names_every_measure(capsys: Capture) -> None:
    assert main(["history", "mine", "--measure", "probability", "--prompt", "the fox", "--token", "o"]) == 0
    value = gptviz.load("mine").over_training("probability", "the fox", "o").values[-1, 0]
    assert capsys.readouterr().out.splitlines()[-1].split() == ["4", f"{value:.4g}"]
    assert [line.split()[0] for line in output(capsys, "history", "mine", "--measure", "list").splitlines()] == list(MEASURES)


def test_a_misspelt_measure_is_an_error_in_one_line(capsys: Capture) -> None:
    assert "did you mean 'weights.norm'?" in error(capsys, "history", "mine", "--measure", "weights.nrom")
