"""The command `quantise`: its table is what the library says, and what it cannot do is said in a line."""

from __future__ import annotations

import json

import pytest

import gptviz
from gptviz.machine.memory import in_bytes
from tests.command_line import answered
from tests.test_cli import Capture, error, output
from tests.tiny import TinyModel

UP = "blocks.1.mlp.up.weight"


def test_the_json_is_what_the_library_says_and_the_table_has_the_same_numbers(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine")
    found = answered(capsys, "quantise", "mine", "--as", "3bit.row", "--prompt", "the fox")
    expected = gptviz.load("mine").fewer_bits("3bit.row", "the fox").to_dict()
    assert found == json.loads(json.dumps(expected))
    printed = output(capsys, "quantise", "mine", "--as", "3bit.row", "--prompt", "the fox")
    assert f"{found['loss']['before']:.4f} → {found['loss']['after']:.4f} nats" in printed
    assert in_bytes(found["bytes"]["kept"]) in printed
    assert "simulated" in printed
    names = [line.split()[0] for line in printed.split("\n\n", 1)[1].splitlines()[1:]]
    assert names == [one["name"] for one in found["matrices"]]


def test_one_matrix_alone_is_quantised(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine")
    found = answered(capsys, "quantise", "mine", "--matrix", UP)
    assert [one["name"] for one in found["matrices"]] == [UP]
    assert found["loss"] is found["divergence"] is None  # nobody knows what it was trained on
    assert "give a text with --prompt" in output(capsys, "quantise", "mine")


def test_a_model_that_is_no_decoder_takes_no_prompt(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("labels", head="mean", n_label=3, mask="full")
    assert "leave the prompt out" in error(capsys, "quantise", "labels", "--prompt", "the fox")
    assert answered(capsys, "quantise", "labels", "--as", "Q8_0")["matrices"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--as", "q4"), "there is 8bit.row"),
        (("--matrix", "blocks.7.mlp.up.weight"), "no matrix of this model; there are embed.weight"),
        (("--prompt", ""), "the prompt is empty"),
    ],
)
def test_what_is_not_possible_is_said_in_a_line(
    options: tuple[str, ...], says: str, capsys: Capture, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    assert says in error(capsys, "quantise", "mine", *options)
