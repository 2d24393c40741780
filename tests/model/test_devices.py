"""Devices are named, and a name this machine lacks is said with those it has."""

from __future__ import annotations

import pytest
import torch

from gptviz.model.devices import device, devices


def machine(
    patch: pytest.MonkeyPatch, gpus: int = 0, mps: bool = False, works: bool = True
) -> None:
    """The machine seems to have so many GPUs of NVIDIA, or one of Apple, which has room for tensors
    if it `works`.
    """

    def empty(*_: int, device: str) -> None:
        if not works:
            raise RuntimeError(f"{device} backend out of memory")

    patch.setattr(torch, "empty", empty)
    patch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    patch.setattr(torch.cuda, "device_count", lambda: gpus)
    patch.setattr(torch.backends.mps, "is_available", lambda: mps)


def test_the_processor_is_always_there_and_comes_last() -> None:
    assert devices()[-1] == "cpu"
    assert device("cpu") == torch.device("cpu")
    assert device(None) == device("auto") == torch.device(devices()[0])


@pytest.mark.parametrize("name", ["cuda:99", "tpu", "", "CPU", "cpu:0 "])
def test_a_device_this_machine_lacks_is_named_with_those_it_has(name: str) -> None:
    with pytest.raises(ValueError, match=f"no device '{name}' on this machine; it has .*cpu"):
        device(name)


def test_the_fastest_comes_first_and_cuda_alone_means_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, gpus=2)
    assert devices() == ["cuda:0", "cuda:1", "cpu"]
    assert device() == device("cuda") == torch.device("cuda:0")
    assert device("cuda:1") == torch.device("cuda:1")
    machine(monkeypatch, mps=True)
    assert device() == torch.device("mps")
    machine(monkeypatch, mps=True, works=False)
    assert devices() == ["cpu"]


def test_each_of_several_processes_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, gpus=2)
    for name in ("cuda", "auto", None):
        assert [device(name, process) for process in range(2)] == [
            torch.device("cuda:0"),
            torch.device("cuda:1"),
        ]
    assert device("cpu", 1) == torch.device("cpu")
    assert device("cuda:0", 1) == torch.device("cuda:0")
    with pytest.raises(
        ValueError, match="no device 'cuda:2' on this machine; it has cuda:0, cuda:1, cpu"
    ):
        device(None, 2)


def test_several_processes_share_a_processor_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    assert [device(None, process) for process in range(3)] == [torch.device("cpu")] * 3
