"""The page Runs."""

from gptviz.ui.page import Page

PAGE = Page(
    name="runs",
    title="Runs",
    icon=":material/stacked_line_chart:",
    group="Your models",
    place=30,
    question="Which model learned best, and why?",
    caption=(
        "Every model, and how its loss fell as it learned: lower is better. Tick some to compare "
        "their curves in one chart."
    ),
    sentence="All models side by side, and how each of them learned.",
    step="Now compare models: see what each part is worth.",
    reads_prompt=False,
    words=("loss", "nat", "perplexity", "validation", "step", "weights"),
    tour=(
        "At the top: **What does each part bring?** shows the ladder, **The experiments** can each "
        "be "
        "trained here.",
        "The table: all models. Choose those whose curves you want to compare; **One model** "
        "renames or deletes one.",
        "The curves: the validation loss over the steps of training.",
    ),
)
