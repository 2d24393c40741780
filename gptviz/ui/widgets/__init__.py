"""Controls whose values live in the address, and the details folded below a figure; here what nearly every page uses of them."""

from .buttons import pressed
from .markdown import escaped, in_quotes
from .tries import Try, try_this

__all__ = ["Try", "escaped", "in_quotes", "pressed", "try_this"]
