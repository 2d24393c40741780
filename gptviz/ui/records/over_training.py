"""The page Over training."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page

TOGETHER = "All in one"
APART = "A panel each"
RELATIVES = "Beside relatives"

PAGE = Page(
    name="over_training",
    title="Over training",
    icon=":material/timeline:",
    group="Take it apart",
    place=105,
    question="When did the model learn it?",
    caption=(
        "Numbers from other pages at every snapshot, a copy of the model kept during training. "
        "Click a point to open its step."
    ),
    sentence="Losses, heads, circuits and weights at every snapshot of the training, and when each "
    "changed.",
    step="What a model does was learned at some time: see when, and what changed together.",
    opens_on="induction",
    words=(
        "step",
        "snapshot",
        "loss",
        "nat",
        "head",
        "induction head",
        "entropy",
        "logit",
        "circuit",
        "residual stream",
        "cosine",
        "weights",
        "singular value",
    ),
    tour=(
        MODEL_ON_TOP,
        "**Measures**: what is followed through the training. Each has a chart of its own, all on "
        "the same axis of steps.",
        "The sharpest change of a measure has a grey stroke behind it.",
        "A click on a point sets the **Training step**: every page then shows the model as it was "
        "there.",
        DETAILS_BELOW,
    ),
    states=(
        {"measures": "heads.previous_token,heads.induction", "show": APART},
        {"model": "finetune", "show": RELATIVES},
    ),
)
