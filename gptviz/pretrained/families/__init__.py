"""How the families of models differ: from a family's `config.json` to our `Config`, from its tensors to our parameters."""

from __future__ import annotations

from .base import Family, Given, ImportRefusedError, Take
from .registry import FAMILIES, family_of

__all__ = ["FAMILIES", "Family", "Given", "ImportRefusedError", "Take", "family_of"]
