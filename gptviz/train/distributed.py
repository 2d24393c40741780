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
    """The processes that train together."""

    rank: int = 0  #: the number of this process, from 0
    size: int = 1  #: how many processes there are

    @property
    def is_main(self) -> bool:
        """Whether this is the process that prints and writes files."""
        return self.rank == 0

    def shard(self, rows: int) -> slice:
        """The rows of a batch of `rows` that this process reads; a ValueError if they do not divide
        evenly among all.
        """
        if rows % self.size:
            raise ValueError(
                f"a batch of {rows} rows cannot be shared equally among {self.size} processes: "
                f"take a multiple of {self.size}"
            )
        return slice(self.rank, None, self.size)

    def sum(self, value: Tensor) -> Tensor:
        """The sum of `value` over all processes, in every process; `value` itself is changed."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value

    def broadcast(self, value: float, device: torch.device) -> float:
        """The main process's `value`, in every process, so that all decide alike."""
        if self.size == 1:
            return value
        shared = torch.tensor(
            value, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device
        )
        distributed.broadcast(shared, 0)
        return shared.item()

    def broadcast_text(self, text: str, device: torch.device) -> str:
        """The main process's `text`, in every process."""
        texts = [text]
        if self.size > 1:
            distributed.broadcast_object_list(texts, 0, device=device)
        return texts[0]

    def share(self, forward: nn.Module, device: torch.device) -> nn.Module:
        """`forward` with its gradients averaged over all processes during the backward pass."""
        if self.size == 1:
            return forward
        return nn.parallel.DistributedDataParallel(
            forward, device_ids=[device.index] if device.type == "cuda" else None
        )


def local_rank() -> int | None:
    """The number of this process on its machine, as `torchrun` sets it; None without `torchrun`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    return None


@contextmanager
def join_processes(device: torch.device) -> Iterator[World]:
    """Join the processes that `torchrun` started, with NCCL on GPUs, else gloo; without `torchrun`,
    this process is alone.
    """
    if local_rank() is None or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield World()
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
