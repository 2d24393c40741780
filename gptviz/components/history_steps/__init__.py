"""The steps of the browser's Back button: one for each action of the visitor."""

from pathlib import Path

from gptviz.components.kit import silent

# A click makes one step in the browser's history, however often the server writes the address for it.
history_steps = silent(Path(__file__).parent)
