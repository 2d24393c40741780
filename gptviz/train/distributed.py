"""Several processes that train one model: PyTorch's distributed engine, as `torchrun` starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn


@dataclass(frozen=True)
class World:
    """How many processes train together, and which of them this one is."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process speaks and writes for all."""
        return self.rank == 0

    def shard(self, rows: int) -> slice:
        """The rows of a batch of `rows` that this process reads.

        Raises:
            ValueError: they cannot be shared out evenly.
        """
        if rows % self.size:
            raise ValueError(f"a batch of {rows} does not divide among {self.size} processes: take a multiple of {self.size}")
        return slice(self.rank, None, self.size)

    def sum(self, value: Tensor) -> Tensor:
        """The sum of `value` over all processes, in each of them."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value

    def broadcast(self, value: float, device: torch.device) -> float:
        """The first process's `value`, in each of them, so that all do the same."""
        if self.size == 1:
            return value
        said = torch.tensor(value, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
        distributed.broadcast(said, 0)
        return said.item()

    def wait(self) -> None:
        """Until all have come this far."""
        if self.size > 1:
            distributed.barrier()

    def share(self, forward: nn.Module, device: torch.device) -> nn.Module:
        """`forward`, its gradients averaged over all processes during the backward pass."""
        if self.size == 1:
            return forward
        return nn.parallel.DistributedDataParallel(forward, device_ids=[device.index] if device.type == "cuda" else None)


def local_rank() -> int | None:
    """Which process of this machine `torchrun` says this is; None without it."""
    return int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else None


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """The world `torchrun` made, joined: NCCL on GPUs, gloo elsewhere; without it, this process alone."""
    if local_rank() is None or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield World()
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
