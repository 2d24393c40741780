"""Whatever a file from elsewhere has more than is known of its format is refused by its name: it is
never without an effect. One test for all formats.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from gptviz.model import Config
from gptviz.pretrained import control_vectors, peft, published_lenses, sae_lens
from gptviz.pretrained.opening import source_at
from tests.examples import tried

SIZE = 6
FEATURES = 10
LLAMA = {
    "model_type": "llama",
    "vocab_size": 8,
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 16,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
}


class Format(NamedTuple):
    """A format of files."""

    #: writes a sound file into a folder, with more: by the place of a table in it, its settings, or
    #: for the place "tensors" its tensors
    write: Callable[[Path, dict[str, dict[str, Any]]], Path]
    read: Callable[[Path], Any]  #: reads it
    tables: tuple[str, ...]  #: the places of tables of settings


def _sae_lens(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    inner = ("activation_fn_kwargs", "model_from_pretrained_kwargs")
    metadata = {"hook_name": "blocks.0.hook_resid_post"} | more.get("metadata", {})
    config = {"architecture": "topk", "k": 2, "d_in": SIZE, "d_sae": FEATURES}
    config |= {"metadata": metadata} | {name: more.get(name, {}) for name in inner}
    (folder / "cfg.json").write_text(json.dumps(config | more.get("", {})))
    tensors = {"W_enc": torch.ones(SIZE, FEATURES), "b_enc": torch.ones(FEATURES)}
    tensors |= {"W_dec": torch.ones(FEATURES, SIZE), "b_dec": torch.ones(SIZE)}
    save_file(tensors | more.get("tensors", {}), folder / "sae_weights.safetensors")
    return folder


def _lens(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    content = {"J": {0: torch.eye(SIZE)} | more.get("tensors", {}), "d_model": SIZE}
    torch.save(
        content | {"metadata": more.get("metadata", {})} | more.get("", {}), folder / "lens.pt"
    )
    return folder / "lens.pt"


def _control_vector(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    writer = gguf.GGUFWriter(folder / "vector.gguf", control_vectors.ARCHITECTURE)
    for name, value in more.get("", {}).items():
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_string(name, str(value))
    for name, tensor in {"direction.1": torch.ones(SIZE), **more.get("tensors", {})}.items():
        writer.add_tensor(name, tensor.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder / "vector.gguf"


def _lora(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 1} | more.get("", {})
    (folder / peft.CONFIG).write_text(json.dumps(config))
    name = "base_model.model.transformer.h.0.mlp.c_fc.lora_"
    tensors = {f"{name}A.weight": torch.ones(1, SIZE), f"{name}B.weight": torch.ones(SIZE, 1)}
    save_file(tensors | more.get("tensors", {}), folder / peft.WEIGHTS)
    return folder


def _model(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    rotary = LLAMA["rope_parameters"] | more.get("rope_parameters", {})  # type: ignore[operator]
    config = LLAMA | {"rope_parameters": rotary} | more.get("", {})
    (folder / "config.json").write_text(json.dumps(config))
    layer = "model.layers.0."
    shapes = {"model.embed_tokens": (8, 8), "lm_head": (8, 8), "model.norm": (8,)}
    shapes |= {f"{layer}{name}_layernorm": (8,) for name in ("input", "post_attention")}
    shapes |= {f"{layer}self_attn.{name}_proj": (8, 8) for name in "qkvo"}
    shapes |= {f"{layer}mlp.{name}_proj": (16, 8) for name in ("gate", "up")}
    tensors = {f"{name}.weight": torch.ones(shape) for name, shape in shapes.items()}
    tensors[f"{layer}mlp.down_proj.weight"] = torch.ones(8, 16)
    save_file(tensors | more.get("tensors", {}), folder / "model.safetensors")
    return folder


def _nanogpt(folder: Path, more: dict[str, dict[str, Any]]) -> Path:
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 4, "vocab_size": 8}
    block = "transformer.h.0."
    shapes = {"transformer.wte": (8, 8), "transformer.wpe": (4, 8), "transformer.ln_f": (8,)}
    shapes |= {f"{block}ln_1": (8,), f"{block}ln_2": (8,), f"{block}attn.c_attn": (24, 8)}
    shapes |= {f"{block}attn.c_proj": (8, 8), f"{block}mlp.c_fc": (32, 8)}
    shapes |= {f"{block}mlp.c_proj": (8, 32)}
    tensors = {f"{name}.weight": torch.ones(shape) for name, shape in shapes.items()}
    args = sizes | {"bias": False} | more.get("", {})
    torch.save({"model": tensors | more.get("tensors", {}), "model_args": args}, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def _weights(path: Path) -> dict[str, Tensor]:
    source = source_at(path)
    config: Config = source.describe_model().config
    return dict(source.parameters(config))


FORMATS = {
    "SAELens": Format(
        _sae_lens,
        sae_lens.read_folder,
        ("", "metadata", "activation_fn_kwargs", "model_from_pretrained_kwargs"),
    ),
    "lens": Format(_lens, lambda path: published_lenses.read_lens(path, 2**20), ("", "metadata")),
    "control vector": Format(_control_vector, control_vectors.read_vectors, ("",)),
    "LoRA": Format(_lora, peft.read_adapter, ("",)),
    "model": Format(_model, _weights, ("", "rope_parameters")),
    "nanoGPT": Format(_nanogpt, _weights, ("",)),
}
# No format knows such a name.
NAMES = st.text(string.ascii_lowercase + "_.", min_size=1, max_size=12).map(
    lambda name: f"qx_{name}q"
)
VALUES = (
    st.just(True)
    | st.integers(-5, 5)
    | st.floats(-2, 2)
    | st.text(string.ascii_letters, min_size=1, max_size=9)
    | st.lists(st.integers(0, 3), min_size=1, max_size=3)
    | st.dictionaries(st.just("a"), st.integers(0, 3), min_size=1)
)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_with_nothing_more_is_read(kind: str, tmp_path: Path) -> None:
    """Nor is what is null, false or empty: it says that something is not there."""
    form = FORMATS[kind]
    assert form.read(form.write(tmp_path, {}))
    for nothing in (None, False, [], {}, "") if kind != "control vector" else ():
        assert form.read(form.write(tmp_path, {form.tables[-1]: {"qx_more": nothing}}))


@pytest.mark.parametrize("kind", FORMATS)
@tried(15, 150, name=NAMES, value=VALUES, data=st.data())
def test_a_setting_that_is_not_known_is_refused_by_its_name(
    kind: str, name: str, value: Any, data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    form = FORMATS[kind]
    place = data.draw(st.sampled_from(form.tables))
    path = form.write(tmp_path_factory.mktemp("more"), {place: {name: value}})
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as refused:
        form.read(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", FORMATS)
@tried(15, 100, name=NAMES, shape=st.sampled_from([(SIZE,), (SIZE, SIZE), (1,), (8, 8)]))
def test_a_tensor_that_is_not_known_is_refused_by_its_name(
    kind: str,
    name: str,
    shape: tuple[int, ...],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    form = FORMATS[kind]
    if kind == "control vector":
        shape = (SIZE,)  # others are no vectors of that file, whatever their names
    path = form.write(tmp_path_factory.mktemp("more"), {"tensors": {name: torch.ones(shape)}})
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as refused:
        form.read(path)
    assert "\n" not in str(refused.value)
