"""The adapter that ships, in the library and on the command line: what was added, what it learned,
and what it forgot.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.data.text import TextSource
from gptviz.interp import compare
from gptviz.interp.changing.ablation import loss
from gptviz.language_model import data
from gptviz.model.lora import MergedTransformer
from gptviz.runs import checkpoints
from gptviz.text import Corpus
from tests.command_line import Capture, answered, error, output, printed

pytestmark = pytest.mark.usefixtures("home")


def test_it_ships_as_its_adapter_alone_and_its_base_is_the_model_it_names() -> None:
    folder = checkpoints.BUNDLED / "finetune-lora"
    assert (folder / "model.safetensors").stat().st_size < (
        checkpoints.BUNDLED / "finetune" / "model.safetensors"
    ).stat().st_size / 10
    lm = gptviz.load("finetune-lora")
    base = gptviz.load("pretrain")
    assert isinstance(lm.model, MergedTransformer)
    assert lm.base is not None
    assert (lm.base.name, base.base) == ("pretrain", None)
    assert torch.equal(
        lm.edited("adapter=0").trace("def f")["logits"], base.trace("def f")["logits"]
    )
    assert torch.equal(lm.base.trace("def f")["logits"], base.trace("def f")["logits"])


def test_it_learns_most_of_what_finetuning_all_weights_does() -> None:
    cards = {
        name: checkpoints.read_card(checkpoints.BUNDLED / name)
        for name in ("from-scratch", "finetune", "finetune-lora")
    }
    alone, full, lora = (card.validation_loss for card in cards.values())
    assert None not in (alone, full, lora)
    assert full < lora < alone  # type: ignore[operator]
    assert (alone - lora) / (alone - full) > 0.5  # type: ignore[operator]


def test_the_losses_along_its_strength_are_those_of_its_edits_on_both_texts() -> None:
    lm = gptviz.load("finetune-lora")
    plays = TextSource(
        Corpus("plays", "KING HENRY:\nO Romeo, Romeo! wherefore art thou Romeo?\n" * 60)
    )
    plays.keep()
    lm.card = lm.card.change_values(source=plays.to_dict(), corpus="plays")
    found = lm.along_strength((0.0, 0.5, 1.0), 256)
    assert found.axes[0].labels == ("plays (finetune-lora)", "python-reference (pretrain)")
    for row, one in enumerate((lm, gptviz.load("pretrain"))):
        texts = data.tested_rows(one, 256)["loss"]
        for column, strength in enumerate((0.0, 0.5, 1.0)):
            assert found.values[row, column] == pytest.approx(
                loss(lm.edited(f"adapter={strength}").model, texts), rel=1e-5
            )
    assert found.values[0, 2] < found.values[0, 0], "what it learned"
    assert found.values[1, 2] > found.values[1, 0], "what it forgot"
    with pytest.raises(ValueError, match="pretrain is no LoRA adapter"):
        gptviz.load("pretrain").along_strength()


def test_the_command_compares_the_weights_of_an_adapter_with_its_base(capsys: Capture) -> None:
    said = answered(capsys, "compare", "finetune-lora", "--what", "weights")
    a, b = (gptviz.load(name).side("x") for name in ("finetune-lora", "pretrain"))
    np.testing.assert_allclose(
        np.array(said["difference"]["values"], float), compare.weights(a, b).difference.values
    )  # type: ignore[union-attr]
    assert said["difference"]["unit"] == "norm of B − A"
    assert "mlp." in output(capsys, "compare", "pretrain", "finetune", "--what", "weights")
    assert "give one, with --prompt TEXT" in error(capsys, "compare", "finetune-lora")


def test_the_command_prints_the_singular_values_of_what_was_added_to_a_matrix(
    capsys: Capture,
) -> None:
    asked = ["compare", "finetune-lora", "--what", "weights", "--matrix", "blocks.0.mlp.up"]
    values = answered(capsys, *asked)["singular_values"]
    one = checkpoints.read_factors(checkpoints.find("finetune-lora"))["blocks.0.mlp.up"]
    expected = np.linalg.svd(one.change.numpy().astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values, expected, atol=1e-4)
    assert sum(value > 1e-4 for value in values) == one.rank == 4
    assert main(asked) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [f"{values[0]:.6f}"]
    assert "did you mean 'blocks.0.mlp.up'?" in error(capsys, *asked[:-1], "blocks.0.mlp.upp")


def test_the_command_prints_the_losses_along_the_strength_and_names_data_that_are_not_here(
    capsys: Capture,
) -> None:
    out, err = printed(capsys, "compare", "finetune-lora", "--what", "strength", "--json")
    assert err.startswith("gptviz: tiny-shakespeare (finetune-lora) is left out: ")
    assert err.count("\n") == 1
    found = json.loads(out)
    with pytest.warns(UserWarning, match="is left out"):
        table = gptviz.load("finetune-lora").along_strength()
    assert found["loss"] == {"python-reference (pretrain)": table.values[0].tolist()}
    assert found["strength"][8] == 1.0
    out, _ = printed(capsys, "compare", "finetune-lora", "--what", "strength")
    assert out.splitlines()[2].split() == ["0", f"{table.values[0, 0]:.4f}"]


def test_a_model_that_is_no_adapter_has_no_strength(capsys: Capture) -> None:
    assert "pretrain is no LoRA adapter" in error(
        capsys, "compare", "pretrain", "--what", "strength"
    )
    assert "this model is no LoRA adapter" in error(
        capsys, "evaluate", "pretrain", "--without", "adapter=0.5"
    )


def test_a_run_with_a_rank_on_the_command_line_is_an_adapter(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be that is the question\n" * 60)
    words = [
        "train",
        "pretrain",
        "--corpus",
        str(text),
        "--from",
        "ladder-8",
        "--lora-rank",
        "1",
        "--steps",
        "2",
    ]
    more = [
        "--batch-size",
        "2",
        "--evaluations",
        "1",
        "--precision",
        "float32",
        "--compile",
        "no",
        "--name",
        "mine",
    ]
    assert main([*words, *more]) == 0
    assert checkpoints.read_adapter(checkpoints.find("mine")).base == "ladder-8"
    assert gptviz.load("mine").base is not None
    assert "choose one to begin with (--from NAME)" in error(
        capsys, "train", "sums", "--lora-rank", "1"
    )
