"""A file of others that is refused, a direction, a lens or a dictionary, leaves nothing in the
user's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.machine.files import home as user_folder
from gptviz.pretrained import control_vectors
from tests.tiny import TinyModel

SIZE = 12  # of the stream of the model
NAN = float("nan")


def vector(path: Path, vectors: dict[int, torch.Tensor]) -> None:
    control_vectors.write(path, vectors, "mine")
    gptviz.load("mine").read_direction(path)


def lens(path: Path, maps: dict[int, torch.Tensor], biases: dict[int, torch.Tensor]) -> None:
    torch.save({"J": maps, "b": biases}, path)
    gptviz.load("mine").read_lens(path)


def dictionary(path: Path, change: Callable[[Path], None]) -> None:
    """Read a dictionary of this model that was written, and then changed."""
    lm = gptviz.load("mine")
    fresh = lm.fit_dictionary(0, 16, steps=1, k=2, text="the quick brown fox " * 20)
    lm.write_dictionary(fresh.name, path)
    for file in (user_folder() / "fitted").iterdir():
        file.unlink()
    change(path)
    lm.read_dictionary(path)


def with_block(path: Path) -> None:
    config = json.loads((path / "cfg.json").read_text())
    text = json.dumps(config).replace("blocks.0.", "blocks.7.")
    (path / "cfg.json").write_text(text)


def with_nan(path: Path) -> None:
    weights = load_file(path / "sae_weights.safetensors")
    weights["b_enc"][0] = NAN
    save_file(weights, path / "sae_weights.safetensors")


REFUSED: dict[str, Callable[[Path], None]] = {
    "a vector with a block too many": lambda path: vector(
        path, {block: torch.ones(SIZE) for block in range(3)}
    ),
    "a vector of another width": lambda path: vector(path, {1: torch.ones(7)}),
    "a vector of zeros": lambda path: vector(path, {1: torch.zeros(SIZE)}),
    "a vector that is no number": lambda path: vector(path, {1: torch.full((SIZE,), NAN)}),
    "a lens of another width": lambda path: lens(path, {0: torch.eye(7)}, {}),
    "a lens with a block too many": lambda path: lens(path, {5: torch.eye(SIZE)}, {}),
    "a lens that is no number": lambda path: lens(path, {0: torch.full((SIZE, SIZE), NAN)}, {}),
    "a lens whose bias is no number": lambda path: lens(
        path, {0: torch.eye(SIZE)}, {0: torch.full((SIZE,), NAN)}
    ),
    "a dictionary of another block": lambda path: dictionary(path, with_block),
    "a dictionary that is no number": lambda path: dictionary(path, with_nan),
}


@pytest.mark.parametrize("read", REFUSED.values(), ids=REFUSED.keys())
def test_nothing_is_kept_of_a_file_that_is_refused(
    read: Callable[[Path], None], tiny_model: TinyModel, home: Path, tmp_path: Path
) -> None:
    tiny_model("mine", d_model=SIZE, n_head=2, d_head=6)
    with pytest.raises(
        ValueError,
        match="another model|not all numbers|not all finite|not numbers|are 0$|after block 7",
    ):
        read(tmp_path / "theirs")
    assert not list((home / "fitted").glob("*"))
