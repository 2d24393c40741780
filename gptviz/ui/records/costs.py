"""The page Size and cost."""

from gptviz.ui.page import Page

COUNTS, BITS = "Counts", "With fewer bits"
VIEWS = (COUNTS, BITS)

PAGE = Page(
    name="costs",
    title="Size and cost",
    icon=":material/calculate:",
    group="Take it apart",
    place=110,
    question="What does this model take?",
    caption=(
        "How many numbers the model has, how many operations it takes to read texts and to learn from them, and how much "
        "memory: move batch and context, and see what grows."
    ),
    sentence="What the model takes: parameters, operations and memory, as formulas; and what fewer bits lose.",
    step="What does all this take? Count parameters, operations and memory, and see what fewer bits lose.",
    reads_prompt=False,
    words=(
        *("parameter", "operation", "activations", "gradient", "optimiser", "keys and values", "token"),
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
        "At the top: the **Model**, the views, **Batch, texts** (side by side) and **Context, tokens** (of each text).",
        "**Counts**: parameters, operations and memory of each part, as formulas and as numbers.",
        "**With fewer bits**: what its guess, its loss and its text lose if its weights are rounded.",
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
