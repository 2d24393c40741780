"""A model of another program in words."""

from __future__ import annotations

from gptviz import memory
from gptviz.memory import size
from gptviz.model.memory_needed import refusal
from gptviz.pretrained.places.stores import Summary


def line(about: Summary) -> str:
    """What is known of a model before it is opened, in a line."""
    parts = [
        about.family,
        f"{about.parameters:,} parameters" if about.parameters is not None else "",
        f"{size(about.size)} on disk" if about.size is not None else "",
        f"needs about {size(about.needs.total)} of memory" if about.needs is not None else "",
        f"licence {about.licence}" if about.licence else "",
    ]
    return ", ".join(part for part in parts if part)


def problem(about: Summary) -> str:
    """Why a model cannot be opened now; empty where nothing is known against it."""
    if about.problem or about.needs is None:
        return about.problem
    return refusal(about.needs, memory.available("cpu")) or ""


def free_memory() -> str:
    """How much memory is free, in a sentence."""
    free = memory.available("cpu")
    return "" if free is None else f"{size(free)} of memory are free on this machine."
