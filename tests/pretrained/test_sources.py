"""Models as other programs keep them: sound ones open, damaged and hostile ones are refused in a
line that names the file.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gptviz.model.parts.positions import turned_pairs
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import reference, source_at, source_from_reference, with_weights
from gptviz.pretrained.sources.folder import outline_of
from gptviz.text import BPETokenizer
from tests.pretrained.test_families import GROUPED, MODELS, VOCAB, opened, same_logits, theirs
from tests.pretrained.torch_files import GPT2, Touch, saved_by_nanogpt


@pytest.fixture(scope="module")
def model() -> Any:
    return theirs("llama", GROUPED)


@pytest.fixture
def folder(model: Any, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path / "some model")
    return tmp_path / "some model"


def changed(folder: Path, name: str, change: Callable[[Tensor], Tensor | None]) -> None:
    """Replace one tensor of the folder, or leave it out."""
    tensors = load_file(folder / "model.safetensors")
    fresh = change(tensors.pop(name))
    save_file(
        tensors | ({} if fresh is None else {name: fresh}),
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )


def test_weights_in_parts_are_read_from_all_of_them(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path, max_shard_size="6KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    same_logits(opened(tmp_path), model)
    next(iter(sorted(tmp_path.glob("*.safetensors")))).unlink()
    with pytest.raises(ImportRefusedError, match=r"model-00001.*\.safetensors is missing"):
        opened(tmp_path)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox"])
def test_an_unembedding_of_its_own_is_used_although_the_config_says_tied(
    kind: str, tmp_path: Path
) -> None:
    sizes = {"gpt2": GPT2, "llama": GROUPED, "gpt_neox": MODELS["gpt_neox"][0]}[kind]
    model = theirs(kind, sizes | {"tie_word_embeddings": True})
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    name = "embed_out.weight" if kind == "gpt_neox" else "lm_head.weight"
    tensors = load_file(file)
    save_file(
        tensors | {name: model.get_input_embeddings().weight.clone()},
        file,
        metadata={"format": "pt"},
    )
    assert source_at(tmp_path).describe_model().config.tied  # the same matrix twice
    same_logits(opened(tmp_path), model)
    other = torch.randn(VOCAB, model.config.hidden_size, generator=torch.Generator().manual_seed(9))
    save_file(tensors | {name: other}, file, metadata={"format": "pt"})
    found = source_at(tmp_path).describe_model()
    assert not found.config.tied
    assert "another unembedding, which is used" in " ".join(found.notes)
    same_logits(opened(tmp_path), type(model).from_pretrained(tmp_path))
    # a model that was imported as tied
    with pytest.raises(ImportRefusedError, match="differs from .*: import it again"):
        with_weights(source_at(tmp_path), source_at(tmp_path).outline().config)


def test_an_unembedding_of_its_own_is_used_in_a_file_of_nanogpt(tmp_path: Path) -> None:
    model = saved_by_nanogpt(tmp_path)
    assert source_at(tmp_path / "ckpt.pt").describe_model().config.tied
    content = torch.load(tmp_path / "ckpt.pt")
    other = torch.randn(
        content["model"]["_orig_mod.lm_head.weight"].shape,
        generator=torch.Generator().manual_seed(9),
    )
    content["model"]["_orig_mod.lm_head.weight"] = other
    torch.save(content, tmp_path / "ckpt.pt")
    model.lm_head.weight = torch.nn.Parameter(other)
    same_logits(opened(tmp_path / "ckpt.pt"), model)


@pytest.mark.parametrize(
    ("kind", "name", "is_share"),
    [
        ("gpt_neox", "rotary_pct", True),
        ("gptj", "rotary_dim", False),
        ("phi", "partial_rotary_factor", True),
    ],
)
def test_rotary_positions_that_turn_an_odd_number_are_refused(
    kind: str, name: str, is_share: bool
) -> None:
    config = theirs(kind, MODELS[kind][0]).config
    size = config.hidden_size // config.num_attention_heads
    fields = {key: value for key, value in config.to_dict().items() if key != "rope_parameters"}

    def turning(numbers: float) -> dict[str, Any]:
        return fields | {name: numbers / size if is_share else int(numbers)}

    with pytest.raises(
        ImportRefusedError, match=f"rotary positions turn 3 of the {size} numbers of a head"
    ):
        outline_of(turning(3.3))
    # transformers leaves the fraction out too
    assert turned_pairs(outline_of(turning(4.4)).config) == 2


def test_an_index_that_points_out_of_its_folder_is_not_followed(folder: Path) -> None:
    os.rename(folder / "model.safetensors", folder.parent / "elsewhere.safetensors")
    index = {"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ImportRefusedError, match=r"points out of its folder, to '\.\./elsewhere"):
        opened(folder)


@pytest.mark.parametrize("place", ["../elsewhere.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_an_index_that_names_files_elsewhere_is_refused(place: str, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "elsewhere")
    index = {"weight_map": {"model.norm.weight": place}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ImportRefusedError, match="points out of its folder"):
        opened(folder)


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
def test_a_whole_file_comes_before_an_index_of_another_save(
    ending: str, model: Any, folder: Path
) -> None:
    if ending == "bin":
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    stem = "model.safetensors" if ending == "safetensors" else "pytorch_model.bin"
    index = {"metadata": {}, "weight_map": {"model.norm.weight": f"gone-00001-of-2.{ending}"}}
    (folder / f"{stem}.index.json").write_text(json.dumps(index))
    judge = type(model).from_pretrained(folder)
    same_logits(opened(folder), judge)


def test_parts_are_read_whole_whatever_their_index_says_of_tensors(
    model: Any, folder: Path
) -> None:
    """The index of `transformers` is a list of files: a tensor that it does not name is read, and of
    one that is in two files the last file's counts.
    """
    whole = folder / "model.safetensors"
    tensors = load_file(whole)
    names = sorted(tensors)
    parts = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    twice = {names[-1]: tensors[names[-1]] + 1}
    first = {name: tensors[name] for name in names[:4]} | twice
    rest = {name: tensors[name] for name in names[4:]}
    for part, some in zip(parts, (first, rest), strict=True):
        save_file(some, folder / part, metadata={"format": "pt"})
    whole.unlink()
    index = {"metadata": {}, "weight_map": {names[0]: parts[0], names[5]: parts[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    same_logits(opened(folder), type(model).from_pretrained(folder))


def test_the_older_format_is_opened_and_nothing_in_it_runs(model: Any, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    same_logits(opened(folder), model)

    torch.save({"model.norm.weight": Touch(folder / "it ran")}, folder / "pytorch_model.bin")
    with pytest.raises(
        ImportRefusedError,
        match=r"pytorch_model\.bin holds more than tensors, and opening it could run code",
    ):
        opened(folder)
    assert not (folder / "it ran").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda f: changed(f, "model.norm.weight", lambda t: None),
            r"model\.safetensors: the tensor model\.norm\.weight is missing",
        ),
        (
            lambda f: changed(f, "model.norm.weight", lambda t: t[:3].clone()),
            r"^model\.safetensors: model\.norm\.weight has the shape \(3,\)",
        ),
        (
            lambda f: changed(
                f, "model.layers.0.self_attn.k_proj.weight", lambda t: t[:, :5].clone()
            ),
            r"some model: the shape of .* or model\.layers\.0\.self_attn\.k_proj\.weight or .* "
            r"does not go with the config",
        ),
        (
            lambda f: changed(f, "model.norm.weight", lambda t: t * np.nan),
            r"^model\.safetensors: model\.norm\.weight holds values that",
        ),
        (
            lambda f: os.truncate(f / "model.safetensors", 5_000),
            r"model\.safetensors is damaged or cut short",
        ),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json is damaged"),
        (lambda f: (f / "config.json").write_text("[1]"), r"config\.json is not a table"),
        (lambda f: os.mkfifo(f / "tokenizer.json"), r"tokenizer\.json is damaged"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_that_names_the_file(
    folder: Path, damage: Callable[[Path], Any], words: str
) -> None:
    damage(folder)
    with pytest.raises(ImportRefusedError, match=words) as refused:
        opened(folder)
    assert "\n" not in str(refused.value)


def test_a_tensor_without_a_place_is_named(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(
        tensors | {"model.layers.0.extra.weight": torch.zeros(2)},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(
        ImportRefusedError,
        match=r"model\.safetensors: 1 tensor has no place .* 'model\.layers\.0\.extra\.weight'",
    ):
        opened(folder)


def test_a_config_of_a_trillion_numbers_takes_no_memory(folder: Path) -> None:
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(fields | {"hidden_size": 10**6, "intermediate_size": 10**7})
    )
    with pytest.raises(ImportRefusedError, match="more than its files of .* can hold"):
        opened(folder)


def test_rows_without_a_token_are_kept_and_named(model: Any, folder: Path) -> None:
    vocabulary = BPETokenizer.learn("to be or not to be", vocab_size=256)
    (folder / "tokenizer.json").write_text(vocabulary.to_json())
    with pytest.raises(
        ImportRefusedError, match="tokenizer.json: the tokenizer has 256 tokens, the model 31 rows"
    ):
        source_at(folder).describe_model()
    wide = theirs("llama", GROUPED | {"vocab_size": 300})
    wide.save_pretrained(folder)
    found = source_at(folder).describe_model()
    assert (found.tokenizer.vocab_size, found.tokenizer.label(299)) == (300, "⟨unused 299⟩")
    assert "The last 44 of its 300 tokens are unused" in found.notes[0]
    assert found.tokenizer.encode("to be").ids == vocabulary.encode("to be").ids


def test_without_a_tokenizer_the_numbers_are_the_text(folder: Path) -> None:
    found = source_at(folder).describe_model()
    assert found.tokenizer.encode("3 14 15").ids == [3, 14, 15]
    assert "without a tokenizer" in found.notes[0]


def test_a_reference_notices_that_its_files_are_gone_or_changed(model: Any, folder: Path) -> None:
    source = source_at(folder)
    content = json.loads(json.dumps(reference(source)))
    same_logits(
        with_weights(source_from_reference(content), source.describe_model().config).eval(), model
    )
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ImportRefusedError, match="have changed: import the model again"):
        source_from_reference(content)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ImportRefusedError, match="are gone: put them back"):
        source_from_reference(content)


# nanoGPT


@pytest.mark.parametrize("bias", [True, False])
def test_nanogpts_checkpoint_has_the_same_logits(tmp_path: Path, bias: bool) -> None:
    model = saved_by_nanogpt(tmp_path, bias=bias)
    characters = [chr(ord("A") + place) for place in range(VOCAB)]
    meta = {
        "vocab_size": VOCAB,
        "itos": dict(enumerate(characters)),
        "stoi": {c: i for i, c in enumerate(characters)},
    }
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(meta))
    same_logits(opened(tmp_path / "ckpt.pt"), model)
    assert source_at(tmp_path / "ckpt.pt").describe_model().tokenizer.encode("CAB").ids == [2, 0, 1]
