"""Published Jacobian lenses: files as jlens writes them, read as lenses of a model, and ours as
jlens reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.interp.changing.edits import fitting
from gptviz.pretrained import published_lenses
from tests.tiny import TinyModel

TEXT = "hello you all, you old owl, how are you, all the while " * 3
MOST = 2**20


@pytest.fixture
def lm(no_bundled_models: None, tiny_model: TinyModel) -> gptviz.LanguageModel:
    tiny_model("writer", text=TEXT, context_length=16, n_layer=3)
    return gptviz.load("writer")


def written(path: Path, maps: dict[Any, Any], **others: Any) -> Path:
    """A file as `lens.save` of jlens writes it."""
    about = {"n_prompts": 100, "source_layers": sorted(map(int, maps)), "d_model": 12}
    torch.save({"J": maps} | about | others, path)
    return path


def halves(count: int = 2, size: int = 12) -> dict[int, Tensor]:
    """Random matrices in the type that published files have."""
    generator = torch.Generator().manual_seed(0)
    return {block: torch.randn(size, size, generator=generator).half() for block in range(count)}


def test_a_published_lens_is_read_through_its_matrices_and_has_a_row_for_each(
    lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    size = lm.model.config.d_model
    maps = halves(size=size)
    name = lm.read_lens(written(tmp_path / "lens.pt", maps, metadata={"model_name": "writer"}))
    seen, trace = lm.lens("hello", kept=name), lm.trace("hello")
    assert [layer.name for layer in seen.layers] == ["blocks.0.mlp", "blocks.1.mlp", "blocks.2.mlp"]
    head = lm.model.head
    for row, block in enumerate((0, 1)):
        # J x, the matrix times a column
        stream = trace[f"blocks.{block}.resid_post"][0] @ maps[block].float().T
        guess = head.unembed(head.final_norm(stream)).softmax(-1)
        np.testing.assert_allclose(seen.probability[row, :, 0], guess.amax(-1).detach(), atol=1e-5)
    plain = lm.lens("hello", blocks_only=True)
    np.testing.assert_array_equal(seen.probability[-1], plain.probability[-1])
    measured = lm.fitted_lens("jacobian", TEXT, kept=name).measured
    assert measured.shape == (2, 2, 3)
    assert np.isfinite(measured).all()
    assert not fitting([f"swap.blocks.1.mlp.0.1.{name}=1"], lm.model).rejected
    assert "does not have this layer" in fitting([f"swap.embed.0.1.{name}=1"], lm.model).rejected[0]


@pytest.mark.parametrize("kind", ["jacobian", "tuned"])
def test_a_fitted_lens_is_taken_home_and_read_again(
    kind: Any, lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    lm.write_lens(tmp_path / "own.pt", kind, TEXT)
    content = torch.load(tmp_path / "own.pt", weights_only=True)
    size = lm.model.config.d_model
    assert content["source_layers"] == list(content["J"]) == [0, 1]
    assert [content["d_model"], *content["J"][0].shape] == [size] * 3
    name = lm.read_lens(tmp_path / "own.pt")
    again, own = (
        lm.lens("hello", kept=name),
        lm.lens("hello", kind=kind, fitted_to=TEXT, blocks_only=True),
    )
    np.testing.assert_array_equal(again.probability, own.probability[1:])
    assert lm.edited("blocks.0.mlp").fitted_lens(kind, TEXT).name == lm.fitted_lens(kind, TEXT).name


class Runs:
    def __reduce__(self) -> Any:
        return print, ("this has run",)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ({}, "is no Jacobian lens: that has a table “J”"),
        ({"layer": torch.eye(12)}, "does not give a matrix for each block"),
        ({0: torch.ones(12)}, "does not give a matrix for each block"),
        ({0: torch.ones(12, 6)}, "not all square"),
        ({0: torch.eye(12), 1: torch.eye(6)}, "not all square and of one size"),
        ({0: torch.ones(1).expand(12, 12)}, "not stored number by number"),
        ({0: torch.full((12, 12), torch.nan)}, "not all numbers"),
        ({0: torch.eye(600)}, "take 1 MB, and 1 is the most"),
        ({0: Runs()}, "could run code: it is not opened"),
    ],
)  # fmt: skip
def test_what_is_no_lens_is_refused(
    maps: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"J": maps}, tmp_path / "lens.pt")
    with pytest.raises(ValueError, match=message):
        published_lenses.read(tmp_path / "lens.pt", MOST)
    assert "this has run" not in capsys.readouterr().out


def test_other_files_and_lenses_of_other_models_are_refused(
    lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    (tmp_path / "cut.pt").write_bytes(
        written(tmp_path / "lens.pt", halves(size=lm.model.config.d_model)).read_bytes()[:600]
    )
    with pytest.raises(ValueError, match=r"cut\.pt is damaged"):
        lm.read_lens(tmp_path / "cut.pt")
    for maps in (halves(size=7), {5: torch.eye(lm.model.config.d_model)}):
        with pytest.raises(ValueError, match=r"lens\.pt is the lens of another model"):
            lm.read_lens(written(tmp_path / "lens.pt", maps))
    with pytest.raises(ValueError, match="no lens abc on this machine"):
        lm.lens("hello", kept="abc")
    with pytest.raises(OSError, match="No such file"):
        lm.read_lens(tmp_path / "gone.pt")
