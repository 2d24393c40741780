"""Controls whose values live in the address, figures, and the details folded below them; here what
nearly every page uses.
"""

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from .buttons import pressed
    from .figure import show_figure, theme
    from .markdown import capitalised, escaped, in_quotes, say_answer
    from .tries import Try, try_this

__getattr__, __dir__, __all__ = lazily(__name__)
