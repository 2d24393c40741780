"""The order of the Tab key when a popover of the page is open."""

from pathlib import Path

from gptviz.components.kit import silent

# The Tab key leads from the button of an open popover into it, and from its end to what follows the button.
popover_keys = silent(Path(__file__).parent)
