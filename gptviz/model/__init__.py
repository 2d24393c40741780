"""The transformer, built from parts, with taps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from .builder import WeightedPart, build, describe, parameter_count
    from .config import Config
    from .long_texts import passes, read_in_passes
    from .parts.attention import KVCache, Memory
    from .parts.positions import sinusoid
    from .presets import PRESETS, RUNGS, change_config, preset
    from .tap import GLOSSARY, IDENTITY, Edit, EnoughError, Record, Tap, Watch
    from .transformer import Transformer

__getattr__, __dir__, __all__ = lazily(__name__)
