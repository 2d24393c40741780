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


def test_a_file_of_the_library_is_read_and_ours_is_read_by_it(tmp_path: Path) -> None:
    vectors = {block: np.arange(12, dtype=np.float32) + block for block in (1, 11)}
    path = written(tmp_path / "happy.gguf", direction_1=vectors[1], direction_11=vectors[11])
    found = control_vectors.read(path)
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
    for path in wrong.values():
        with pytest.raises(ValueError, match="is no control vector"):
            control_vectors.read(path)
    (tmp_path / "cut.gguf").write_bytes(wrong["names"].read_bytes()[:60])
    with pytest.raises(ValueError, match="no GGUF file, or cut"):
        control_vectors.read(tmp_path / "cut.gguf")
    with pytest.raises(OSError, match="folder"):
        control_vectors.read(tmp_path)


def test_a_direction_goes_through_a_file_and_acts_as_before(
    tmp_path: Path, tiny_model: TinyModel
) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    found = lm.direction(["a cab", "a bad cab"], ["a bed", "a bad bed"], name="cab")
    lm.write_direction(found.name, tmp_path / "Cab 1.gguf")
    again = lm.read_direction(tmp_path / "Cab 1.gguf")
    assert again.name.startswith("cab-1-")
    assert list(again.vectors) == [0, 1]
    one, other = (lm.edited(each.edit(3)).trace("a cab")["logits"] for each in (found, again))
    assert torch.equal(one, other)
    assert not torch.equal(one, lm.trace("a cab")["logits"])
    tiny_model("short", text="abcdefg ", n_layer=1)
    with pytest.raises(ValueError, match="of another model"):
        gptviz.load("short").read_direction(tmp_path / "Cab 1.gguf")
