"""The transformer, built from parts, with taps."""

from .attention import KVCache, Memory
from .build import Layer, build, describe, parameter_count
from .config import Config
from .long_texts import passes, read_in_passes
from .positions import sinusoid
from .presets import PRESETS, RUNGS, changed, preset
from .tap import GLOSSARY, IDENTITY, Edit, Record, Tap, Watch
from .transformer import Transformer

__all__ = [
    "GLOSSARY",
    "IDENTITY",
    "PRESETS",
    "RUNGS",
    "Config",
    "Edit",
    "KVCache",
    "Layer",
    "Memory",
    "Record",
    "Tap",
    "Transformer",
    "Watch",
    "build",
    "changed",
    "describe",
    "parameter_count",
    "passes",
    "preset",
    "read_in_passes",
    "sinusoid",
]
