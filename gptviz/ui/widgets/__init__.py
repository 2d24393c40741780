"""Controls whose values live in the address, figures, and the details folded below them; here what
nearly every page uses.
"""

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from .buttons import press_button
    from .figure import show_figure, theme
    from .markdown import capitalise_text, escape_markdown, in_quotes, name_place, say_answer
    from .tries import Try, try_this

__getattr__, __dir__, __all__ = lazily(__name__)
