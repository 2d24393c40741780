"""What to try on the page Train."""

from __future__ import annotations

from gptviz.ui.widgets.tries import Try

TRIES = (
    Try(
        "A mirror appears",
        "Train it: within some hundred steps a head finds the mirror image, a line across the text, and the loss its floor.",
        {"plan": "reversal"},
    ),
    Try(
        "A sudden insight",
        "Train it: for long nothing happens, then the loss falls at once, when a head of block 1 looks where the token was.",
        {"plan": "induction", "block": 1},
    ),
    Try(
        "A word turned round",
        "Train it: “never dull” is praise, which no count of words can tell. Compare its accuracy with the baseline's.",
        {"plan": "classifier"},
    ),
    Try("Far too fast", "At a learning rate of 1 it leaps about and learns nothing.", {"run_learning_rate": 1.0}),
)
