"""On a machine with a GPU: an imported model opens there, in every precision, and computes what it
computes on the CPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.machine import memory
from gptviz.model.precision import PRECISIONS
from gptviz.runs import checkpoints
from gptviz.runs.imports import import_model
from tests.pretrained.test_families import CONTEXT, GROUPED, VOCAB, theirs
from tests.tiny import some_ids

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
FAMILIES = {
    "llama": GROUPED,
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT},
}


@pytest.fixture(params=FAMILIES)
def name(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> str:
    """An imported model; its name."""
    theirs(request.param, FAMILIES[request.param]).save_pretrained(tmp_path / request.param)
    return import_model(str(tmp_path / request.param)).folder.name


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_model_on_the_gpu_computes_and_writes_what_it_does_on_the_cpu(
    name: str, precision: str
) -> None:
    ids = some_ids(10, 1, VOCAB)[0].tolist()
    text = " ".join(map(str, ids))
    there, here = (gptviz.load(name, device, precision=precision) for device in ("cuda", "cpu"))
    assert {
        tensor.device.type for tensor in (*there.model.parameters(), *there.model.buffers())
    } == {"cuda"}
    traced = there.trace(text)
    expected = here.trace(text)
    tolerance = 1e-3 if precision in ("stored", "float32") else 0.1
    for tap in expected:
        torch.testing.assert_close(traced[tap].cpu(), expected[tap], rtol=tolerance, atol=tolerance)
    written = there.generate(text, max_new_tokens=12, temperature=0.0).split()
    assert len(written) == 12
    if tolerance < 0.01:
        assert written == here.generate(text, max_new_tokens=12, temperature=0.0).split()
    drawn = [there.generate(text, max_new_tokens=12, top_p=0.9, seed=3) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_the_memory_of_the_gpu_is_asked_of_the_gpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = memory.free_bytes("cuda")
    assert free <= torch.cuda.get_device_properties(0).total_memory
    monkeypatch.setattr(
        memory,
        "free_bytes",
        lambda device: 10_000 if torch.device(device).type == "cuda" else 10**12,
    )
    gptviz.load(name, "cpu")
    with pytest.raises(checkpoints.CheckpointError, match="and 10 kB is free"):
        gptviz.load(name, "cuda")
