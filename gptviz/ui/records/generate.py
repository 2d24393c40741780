"""The page Generate."""

from gptviz.ui.page import ARROWS, DETAILS_BELOW, MODEL_ON_TOP, Keys, Page

PAGE = Page(
    name="generate",
    title="Generate",
    icon=":material/play_arrow:",
    group="From outside",
    place=40,
    question="What does the model write?",
    caption=(
        "Grey: the prompt. The model drew the rest, token by token: the stronger the colour, the "
        "surer it was. Click a token to "
        "go on there."
    ),
    sentence="Watch text appear token by token, and steer it.",
    step="A text is many such guesses, one after the other: watch it grow, and take another turn.",
    kinds=("decoder",),
    pictured={"route": "t0.8n100_9fc167"},  # a text of a hundred tokens
    words=(
        "token",
        "prompt",
        "temperature",
        "top-k, top-p",
        "log-probability",
        "nat",
        "attention",
        "speculative decoding",
        "drafter",
    ),
    tour=(
        MODEL_ON_TOP,
        "**Step** writes one token, **Play** writes on, **Undo** goes back. Temperature and cuts "
        "are beside them.",
        "The tree: what was written. Click a token to see what else was possible there, and take "
        "another turn.",
        DETAILS_BELOW,
        Keys("generation_tree", ARROWS, "lead from token to token and branch to branch"),
        Keys(
            "generation_tree",
            ("Enter",),
            "goes on from there; **1** to **9** take another token in its place",
        ),
    ),
    opens_on="bpe",
)
