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
    size = next(iter(maps.values())).shape[-1]
    about = {"n_prompts": 100, "source_layers": sorted(map(int, maps)), "d_model": size}
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
    seen = lm.lens("hello", kept=name)
    trace = lm.trace("hello")
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
    table = content["J" if kind == "jacobian" else "A"]
    assert content["source_layers"] == list(table) == [0, 1]
    assert [content["d_model"], *table[0].shape] == [size] * 3
    name = lm.read_lens(tmp_path / "own.pt")
    again = lm.lens("hello", kept=name)
    own = lm.lens("hello", kind=kind, fitted_to=TEXT, blocks_only=True)
    np.testing.assert_array_equal(again.probability, own.probability[1:])
    assert lm.edited("blocks.0.mlp").fitted_lens(kind, TEXT).name == lm.fitted_lens(kind, TEXT).name


@pytest.mark.parametrize("kind", ["jacobian", "tuned"])
def test_other_programs_open_a_jacobian_lens_as_it_is_and_no_tuned_one(
    kind: Any, lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    """By the rules of `JacobianLens.load` in jlens and in TransformerLens, written out here: both
    read `J`, or the sums of a fit that is still going on, and nothing beside them.
    """
    lm.write_lens(tmp_path / "own.pt", kind, TEXT)
    content = torch.load(tmp_path / "own.pt", weights_only=True)
    opens = "J" in content or "jacobian_sum" in content
    assert opens == (kind == "jacobian")
    if opens:
        size = lm.model.config.d_model
        assert {
            int(block): tuple(each.shape) for block, each in content["J"].items()
        } == dict.fromkeys(range(2), (size, size))
        assert (int(content["n_prompts"]), int(content["d_model"])) == (1, size)
        stream = lm.trace("hello")["blocks.0.resid_post"][0]
        guess = lm.model.head.unembed(lm.model.head.final_norm(stream @ content["J"][0].T))
        ours = lm.lens("hello", kind="jacobian", fitted_to=TEXT, blocks_only=True)
        top = guess.softmax(-1).amax(-1).detach()
        np.testing.assert_allclose(ours.probability[1, :, 0], top, atol=1e-5)


def test_a_tuned_lens_that_an_earlier_version_wrote_opens(
    lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    lm.write_lens(tmp_path / "own.pt", "tuned", TEXT)
    content = torch.load(tmp_path / "own.pt", weights_only=True)
    torch.save({"J": content.pop("A")} | content, tmp_path / "earlier.pt")
    assert lm.read_lens(tmp_path / "own.pt") == lm.read_lens(tmp_path / "earlier.pt")


@pytest.mark.parametrize("kind", ["jacobian", "tuned"])
def test_a_model_of_one_block_has_no_lens_to_take_home(
    kind: Any, no_bundled_models: None, tiny_model: TinyModel, tmp_path: Path
) -> None:
    tiny_model("short", text=TEXT, context_length=16, n_layer=1)
    with pytest.raises(ValueError, match="this model has one block: there is nothing to write"):
        gptviz.load("short").write_lens(tmp_path / "own.pt", kind, TEXT)


def test_one_lens_has_one_name_however_its_blocks_are_written(
    lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    maps = halves(size=lm.model.config.d_model)
    whole = torch.stack([*maps.values()])
    alike = [
        {"J": maps},
        {"J": {str(block): each for block, each in maps.items()}, "metadata": {"target_layer": 2}},
        {"J": {f"layer_{block}": each.double() for block, each in maps.items()}},
        {"J": whole, "source_layers": [0, 1]},
        {"J": whole, "d_model": len(maps[0]), "source_layers": torch.arange(2)},
        {"J": maps | {2: torch.eye(len(maps[0]))}, "source_layers": [0, 1, 2]},
    ]
    names = []
    for content in alike:
        torch.save(content, tmp_path / "lens.pt")
        names.append(lm.read_lens(tmp_path / "lens.pt"))
    assert len({*names}) == 1
    torch.save({"J": whole, "source_layers": [1, 0]}, tmp_path / "lens.pt")
    turned = {1: maps[0], 0: maps[1]}
    assert lm.read_lens(tmp_path / "lens.pt") == lm.read_lens(written(tmp_path / "2.pt", turned))


class Runs:
    def __reduce__(self) -> Any:
        return print, ("this has run",)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ({}, "is no Jacobian lens: that has a table “J”"),
        ({"layer": torch.eye(12)}, "does not give one matrix for each block"),
        ({0: torch.ones(12)}, "does not give one matrix for each block"),
        ({0: torch.ones(12, 6)}, "all square"),
        ({0: torch.eye(12), 1: torch.eye(6)}, "all square and of one size"),
        ({0: torch.ones(1).expand(12, 12)}, "not stored number by number"),
        ({0: torch.full((12, 12), torch.nan)}, "block 0 holds values that are not numbers"),
        ({0: torch.eye(600)}, "take 1 MB, and 1 is the most"),
        ({0: Runs()}, "could run code: it is not opened"),
        ({0: torch.eye(12) * 1j}, "block 0 holds complex numbers"),
        ({0: torch.eye(12), "0": torch.eye(12)}, "one matrix for each block: see '0' in J"),
        (torch.eye(12), r"J has the shape \[12, 12\]; it must be \[block, d_model, d_model\]"),
        (torch.ones(1).expand(2, 12, 12), "not stored number by number"),
        ([torch.eye(12)], "J is .* it must be a table"),
    ],
)  # fmt: skip
def test_what_is_no_lens_is_refused(
    maps: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"J": maps}, tmp_path / "lens.pt")
    with pytest.raises(ValueError, match=message):
        published_lenses.read_lens(tmp_path / "lens.pt", MOST)
    assert "this has run" not in capsys.readouterr().out


EYE = torch.eye(12)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"b": {0: torch.full((12,), torch.nan)}}, "b, block 0 holds values that are not numbers"),
        ({"b": {0: torch.zeros(7)}}, "all square and of one size"),
        ({"b": {1: torch.zeros(12)}}, "are not of the same blocks"),
        ({"b": torch.zeros(12)}, r"b has the shape \[12\]"),
        ({"d_model": 24}, "d_model is 24"),
        (
            {"source_layers": [0, 1]},
            r"source_layers is \[0, 1\]; of lens files gptviz opens those with \[0\]",
        ),
        ({"A": {0: EYE}}, "J is .* gptviz does not know this field"),
        ({"source_layers": [[0], 1]}, "source_layers is"),
        ({"d_model": torch.ones(3)}, r"d_model is \[1\.0, 1\.0, 1\.0\]"),
        ({"metadata": [1]}, "metadata is .* it must be a table"),
        ({"metadata": {"scale": 2}}, "metadata: scale is 2; gptviz does not know"),
        ({"jacobian_sum": {0: EYE}}, "jacobian_sum is"),
        ({"target_layer": 1}, "target_layer is 1: it leads to another block than the last, 2"),
        ({"metadata": {"target_layer": 0}}, "target_layer is 0"),
        ({"J": {0: EYE, 2: EYE * 2}}, "the matrix of the last block, 2, changes the stream"),
    ],
)
def test_what_would_be_left_out_of_a_lens_is_refused_by_name(
    more: dict[str, Any], message: str, lm: gptviz.LanguageModel, tmp_path: Path
) -> None:
    assert lm.model.config.d_model == len(EYE)
    torch.save({"J": {0: EYE}} | more, tmp_path / "lens.pt")
    with pytest.raises(ValueError, match=message):
        lm.read_lens(tmp_path / "lens.pt")


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
