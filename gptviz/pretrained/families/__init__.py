"""How the families of models differ: from a family's `config.json` to our `Config`, from its
tensors to our parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from ..given import Given, ImportRefusedError
    from .base import Family, Take
    from .registry import FAMILIES, family_of

__getattr__, __dir__, __all__ = lazily(__name__)
