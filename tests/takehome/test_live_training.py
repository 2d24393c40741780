"""Training in the browser: gradients and steps of JavaScript beside torch and the trainer, and what it
saves beside what the library opens.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from gptviz.data.batches import Windows
from gptviz.data.trained_on import draw_seed
from gptviz.model import Config, Transformer, build
from gptviz.takehome.live import PARTS
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Stepped, Trainer

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
SIZES: dict[str, Any] = {
    "vocab_size": 7,
    "context_length": 9,
    "d_model": 8,
    "n_layer": 2,
    "n_head": 2,
}
# Every value of every field that has a part of its own, and the fields that give parts weights.
VARIED = [
    *({field: value} for field, values in PARTS.items() for value in values),
    *({"n_kv_head": 1}, {"d_mlp": 0}, {"n_layer": 0}, {"tied": True}, {"unembed_bias": True}),
    *({"qkv_bias": False, "output_bias": False}, {"mlp_bias": False}, {"norm_bias": False}),
    *({"norm_gain": False}, {"final_norm": False}, {"d_head": 6, "score_scale": 0.7}),
    {"tied": True, "unembed_bias": True, "positions": "rotary", "qk_norm": "shared", "n_kv_head": 1},
]  # fmt: skip


def node(script: str, asked: object) -> dict[str, Any]:
    """What a script of tests/js answers."""
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "js" / script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rough(config: Config) -> Transformer:
    """A model none of whose weights is 0 or 1, so that each of them matters."""
    model = build(config, seed=1)
    drawn = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weights in model.parameters():
            weights += 0.3 * torch.randn(weights.shape, generator=drawn)
    return model


@pytest.mark.parametrize("varied", VARIED, ids=str)
def test_gradients_are_those_of_torch(varied: dict[str, Any], tmp_path: Path) -> None:
    config = Config(**{**SIZES, **varied})
    model = rough(config)
    save_file(dict(model.named_parameters()), tmp_path / "model.safetensors")
    drawn = torch.Generator().manual_seed(3)
    rows = [
        torch.randint(7, (length + 1,), generator=drawn) for length in (config.context_length, 4)
    ]
    exact = build(config).double()
    exact.load_state_dict(model.state_dict())
    losses = [F.cross_entropy(exact(row[None, :-1])[0], row[1:], reduction="sum") for row in rows]
    loss = sum(losses) / sum(len(row) - 1 for row in rows)
    loss.backward()
    asked = {"weights": str(tmp_path / "model.safetensors"), "config": dataclasses.asdict(config)}
    asked |= {"rows": [row.tolist() for row in rows], "out": str(tmp_path / "gradients")}
    assert node("learning.js", asked)["loss"] == pytest.approx(loss.item(), abs=1e-6)
    found = load_file(tmp_path / "gradients")
    expected = {name: weights.grad for name, weights in exact.named_parameters()}
    assert found.keys() == expected.keys()
    for name, slopes in expected.items():
        np.testing.assert_allclose(found[name], slopes, rtol=1e-5, atol=1e-5, err_msg=name)


def test_ten_steps_are_those_of_the_trainer(tmp_path: Path) -> None:
    config = Config(**SIZES, activation="relu")
    model = build(config, seed=1)
    save_file(dict(model.named_parameters()), tmp_path / "model.safetensors")
    ids = torch.arange(200) ** 2 % 7
    windows = Windows(ids, ids[:50], config.context_length)
    recipe = Recipe(steps=10, batch_size=3, learning_rate=0.02, warmup=0.2, evaluations=1)
    batches = [
        windows.windows[windows.places(3, draw_seed(0, step, "batch"))].tolist()
        for step in range(10)
    ]
    asked = {"weights": str(tmp_path / "model.safetensors"), "config": dataclasses.asdict(config)}
    asked |= {"batches": batches, "recipe": recipe.to_dict(), "out": str(tmp_path / "trained")}
    found = node("learning.js", asked)
    steps = [event for event in Trainer(model, windows, recipe) if isinstance(event, Stepped)]
    np.testing.assert_allclose(found["losses"], [step.loss for step in steps], atol=1e-4)
    assert found["losses"][9] < found["losses"][0] - 0.1
    weights = load_file(tmp_path / "trained")
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(weights[name], parameter.detach(), atol=1e-4, err_msg=name)
