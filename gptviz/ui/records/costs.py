"""The page Size and cost."""

from gptviz.ui.page import Page

COUNTS = "Counts"
BITS = "With fewer bits"
VIEWS = (BITS, COUNTS)

PAGE = Page(
    name="costs",
    title="Size and cost",
    icon=":material/calculate:",
    group="Take it apart",
    place=110,
    question="What does this model cost?",
    caption=(
        "What its guess and its text lose if its numbers are kept in fewer bits; and how many "
        "numbers, operations and how much "
        "memory it takes."
    ),
    sentence="What fewer bits lose; and what the model takes: parameters, operations and memory, "
    "as "
    "formulas.",
    step="What does all this take? Count parameters, operations and memory, and see what fewer "
    "bits lose.",
    reads_prompt=False,
    words=(
        *(
            "parameter",
            "operation",
            "activations",
            "gradient",
            "optimiser",
            "keys and values",
            "token",
        ),
        *("batch", "step", "block", "attention", "MLP", "embedding", "float32"),
        *(
            "quantisation",
            "bits per weight",
            "outlier",
            "weights",
            "norm",
            "bias",
            "loss",
            "nat",
            "GGUF",
            "prompt",
            "temperature",
        ),
    ),
    tour=(
        "At the top: the **Model** and the views.",
        "**With fewer bits**: what its guess, its loss and its text lose if its weights are "
        "rounded.",
        "**Counts**: parameters, operations and memory of each part, as formulas and as numbers, "
        "for **Batch, texts** (side by "
        "side) and **Context, tokens** (of each text).",
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
