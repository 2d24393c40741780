"""The transformer, built from parts, with taps."""

from .build import WeightedPart, build, describe, parameter_count
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
