"""The transformer, built from parts, with taps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .builder import WeightedPart, build, describe, parameter_count
    from .config import Config
    from .long_texts import passes, read_in_passes
    from .parts.attention import KVCache, Memory
    from .parts.positions import sinusoid
    from .presets import PRESETS, RUNGS, changed, preset
    from .tap import GLOSSARY, IDENTITY, Edit, EnoughError, Record, Tap, Watch
    from .transformer import Transformer

__all__ = [
    "GLOSSARY",
    "IDENTITY",
    "PRESETS",
    "RUNGS",
    "Config",
    "Edit",
    "EnoughError",
    "KVCache",
    "Memory",
    "Record",
    "Tap",
    "Transformer",
    "Watch",
    "WeightedPart",
    "build",
    "changed",
    "describe",
    "parameter_count",
    "passes",
    "preset",
    "read_in_passes",
    "sinusoid",
]

# The module of each name. torch takes a second to import, and the frame of a page, which needs none of these, does not wait for
# it.
_MODULES = {
    **dict.fromkeys(("WeightedPart", "build", "describe", "parameter_count"), "builder"),
    "Config": "config",
    **dict.fromkeys(("passes", "read_in_passes"), "long_texts"),
    **dict.fromkeys(("KVCache", "Memory"), "parts.attention"),
    "sinusoid": "parts.positions",
    **dict.fromkeys(("PRESETS", "RUNGS", "changed", "preset"), "presets"),
    **dict.fromkeys(("GLOSSARY", "IDENTITY", "Edit", "EnoughError", "Record", "Tap", "Watch"), "tap"),
    "Transformer": "transformer",
}


def __dir__() -> list[str]:
    """All that `__all__` names, so that editors and `help` know of what is imported later."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'gptviz.model' has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
