"""Devices: where tensors live. A model trained or opened on one opens on any other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# The precision of a model that is opened with its weights as they are stored: see
# `gptviz.model.precision`.
STORED = "stored"


def devices() -> list[str]:
    """The devices of this machine, the fastest first."""
    import torch

    devices = []
    if torch.cuda.is_available():
        devices += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        # Within virtual machines Apple's GPUs are said to be there too, but no tensor can be.
        with suppress(RuntimeError):
            torch.empty(1, device="mps")
            devices.append("mps")
    return [*devices, "cpu"]


def device(name: str | None = None, process: int | None = None) -> torch.device:
    """The device called `name`, or the fastest for None or "auto"; a ValueError names the devices
    of this machine. `process` is the number of this process among several on this machine: on
    "cuda" each process takes its own GPU.
    """
    import torch

    here = devices()
    if name in (None, "auto"):
        name = here[0].split(":")[0] if process is not None else here[0]
    if name == "cuda" and process is not None:
        name = f"cuda:{process}"
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in here:
        raise ValueError(f"no device {name!r} on this machine; it has {', '.join(here)}")
    return torch.device(wanted)


def may_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 can be faster on `device`: without hardware for it, it is emulated."""
    import torch

    if device.type == "cpu":
        return torch.cpu.get_capabilities().get("avx512_bf16", False)
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
