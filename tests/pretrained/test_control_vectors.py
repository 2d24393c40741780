"""GGUF control vectors: as the `gguf` library writes and reads them, by the names that llama.cpp
and repeng use.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import gptviz
from gptviz.pretrained import control_vectors
from tests.tiny import TinyModel


def written(path: Path, architecture: str = "controlvector", **vectors: np.ndarray) -> Path:
    """A file as repeng writes it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_string("controlvector.model_hint", "mistral")
    writer.add_uint32("controlvector.layer_count", len(vectors))
    for name, vector in vectors.items():
        writer.add_tensor(name.replace("_", "."), vector)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def opened_by_llama_cpp(path: Path) -> dict[int, list[float]]:
    """The vectors by block as `common_control_vector_load_one` of llama.cpp takes them: an index
    that is 0 or no number, another kind of numbers, shape or length ends the reading of the file.
    """
    vectors: dict[int, list[float]] = {}
    for tensor in gguf.GGUFReader(path).tensors:
        word, _, index = tensor.name.partition(".")
        assert word == "direction"
        assert int(index) > 0
        assert tensor.tensor_type == gguf.GGMLQuantizationType.F32
        assert len(tensor.shape) == 1
        assert {len(tensor.data)} >= {len(each) for each in vectors.values()}
        vectors[int(index)] = tensor.data.tolist()
    assert vectors
    return vectors


def test_a_vector_of_zeros_adds_nothing_and_one_of_no_numbers_is_refused(tmp_path: Path) -> None:
    some = np.ones(12, np.float32)
    none = np.zeros(12, np.float32)
    path = written(tmp_path / "a.gguf", direction_1=none, direction_2=some)
    assert {block: each.tolist() for block, each in control_vectors.read_vectors(path).items()} == {
        2: [1.0] * 12
    }
    with pytest.raises(ValueError, match="adds nothing to the stream: all its numbers are 0"):
        control_vectors.read_vectors(written(tmp_path / "b.gguf", direction_1=none))
    for value in (np.nan, np.inf):
        odd = written(tmp_path / "c.gguf", direction_1=some, direction_2=some * value)
        with pytest.raises(ValueError, match=r"direction\.2 holds values that are not numbers"):
            control_vectors.read_vectors(odd)


def test_a_block_has_one_vector(tmp_path: Path) -> None:
    """llama.cpp adds the two, and older versions here read the last one."""
    some = np.ones(12, np.float32)
    path = written(tmp_path / "a.gguf", direction_1=some, direction_01=some)
    with pytest.raises(ValueError, match=r"two vectors for block 1: see direction\.01"):
        control_vectors.read_vectors(path)


def test_a_file_of_the_library_is_read_and_ours_is_read_by_it(tmp_path: Path) -> None:
    vectors = {block: np.arange(12, dtype=np.float32) + block for block in (1, 11)}
    path = written(tmp_path / "happy.gguf", direction_1=vectors[1], direction_11=vectors[11])
    found = control_vectors.read_vectors(path)
    assert {block: vector.tolist() for block, vector in found.items()} == {
        k: v.tolist() for k, v in vectors.items()
    }
    control_vectors.write(tmp_path / "ours.gguf", found, "mine")
    reader = gguf.GGUFReader(tmp_path / "ours.gguf")
    assert [tensor.name for tensor in reader.tensors] == ["direction.1", "direction.11"]
    assert all(tensor.tensor_type == gguf.GGMLQuantizationType.F32 for tensor in reader.tensors)
    np.testing.assert_array_equal(reader.tensors[1].data, vectors[11])
    said = {
        name: reader.fields[name].contents()
        for name in ("general.architecture", "controlvector.layer_count")
    }
    assert said == {"general.architecture": "controlvector", "controlvector.layer_count": 2}


def test_what_is_no_control_vector_is_refused(tmp_path: Path) -> None:
    vector = np.ones(12, np.float32)
    wrong = {
        "architecture": written(tmp_path / "a.gguf", "llama", direction_1=vector),
        "names": written(tmp_path / "b.gguf", blk_1=vector),
        "lengths": written(tmp_path / "c.gguf", direction_1=vector, direction_2=vector[:3]),
        "type": written(tmp_path / "d.gguf", direction_1=vector.astype(np.float16)),
        "shape": written(tmp_path / "e.gguf", direction_1=vector.reshape(3, 4)),
    }
    for why, path in wrong.items():
        message = "'blk.1'" if why == "names" else "is no control vector"
        with pytest.raises(ValueError, match=message):
            control_vectors.read_vectors(path)
    (tmp_path / "cut.gguf").write_bytes(wrong["names"].read_bytes()[:60])
    with pytest.raises(ValueError, match="no GGUF file, or cut"):
        control_vectors.read_vectors(tmp_path / "cut.gguf")
    with pytest.raises(OSError, match="folder"):
        control_vectors.read_vectors(tmp_path)


def test_a_direction_goes_through_a_file_and_acts_as_before(
    tmp_path: Path, tiny_model: TinyModel
) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    found = lm.direction(["a cab", "a bad cab"], ["a bed", "a bad bed"], name="cab")
    lm.write_direction(found.name, tmp_path / "Cab 1.gguf")
    again = lm.read_direction(tmp_path / "Cab 1.gguf")
    assert again.name.startswith("cab-1-")
    assert sorted(again.vectors) == [0, 1]
    one, other = (lm.edited(each.edit(3)).trace("a cab")["logits"] for each in (found, again))
    assert torch.equal(one, other)
    assert not torch.equal(one, lm.trace("a cab")["logits"])
    assert opened_by_llama_cpp(tmp_path / "Cab 1.gguf").keys() == {1}
    first = lm.direction(["a cab", "a bad cab"], ["a bed", "a bad bed"], name="cab", block=0)
    with pytest.raises(ValueError, match="acts only after block 0, and llama.cpp takes no vector"):
        lm.write_direction(first.name, tmp_path / "first.gguf")
    assert not (tmp_path / "first.gguf").exists()
    tiny_model("short", text="abcdefg ", n_layer=1)
    with pytest.raises(ValueError, match="of another model"):
        gptviz.load("short").read_direction(tmp_path / "Cab 1.gguf")
