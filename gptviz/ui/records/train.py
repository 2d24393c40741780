"""The page Train."""

from gptviz.ui.page import DETAILS_BELOW, Page

PAGE = Page(
    name="train",
    title="Train",
    icon=":material/model_training:",
    group="Your models",
    place=20,
    question="How does a model learn?",
    caption="Step by step its weights are moved so that the right answer surprises it less: the "
    "loss, "
    "its mean surprise, falls.",
    sentence="Train a transformer, and watch it learn as it does.",
    step="None of this was built in, all of it was learned: train a small model, and watch.",
    reads_prompt=False,
    words=(
        "loss",
        "nat",
        "perplexity",
        "validation",
        "step",
        "batch",
        "learning rate",
        "weights",
        "dropout",
    ),
    tour=(
        "On the right: **What to train**, on which data, and how. Press **Train** to begin.",
        "On the left: the run that is watched, its losses as they come, and what it writes.",
        "Below: inside the model, while it learns.",
        DETAILS_BELOW,
    ),
)
