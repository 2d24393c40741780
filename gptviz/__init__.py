"""gptviz: open, train, watch and take apart a transformer.

>>> import gptviz
>>> lm = gptviz.load("shakespeare")
>>> print(lm.generate("ROMEO:", temperature=0.8, seed=1))
>>> lm.trace("ROMEO:")["blocks.2.attention.pattern"]  # [1, head, query, key]
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._version import __version__

# Before torch is imported: its threads wait for each other by spinning, which takes the cores from other computations. With
# a training in the background, all that pages compute took up to twenty times as long; threads that do not spin at all make the
# steps of a small training take three times as long.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__all__ = ["LanguageModel", "__version__", "load", "show"]

if TYPE_CHECKING:
    from .language_model import LanguageModel, load
    from .takehome.show import show


def __dir__() -> list[str]:
    """All that `__all__` names, so that editors and `help` know of what is imported later."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # torch takes a second to import: it is imported only when a model is opened.
    if name in ("LanguageModel", "load"):
        from . import language_model

        return getattr(language_model, name)
    if name == "show":
        from .takehome.show import show

        return show
    raise AttributeError(f"module 'gptviz' has no attribute {name!r}")
