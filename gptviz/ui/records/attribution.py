"""The page Attribution."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, TOKEN_KEYS, Page

PAGE = Page(
    name="attribution",
    title="Attribution",
    icon=":material/account_tree:",
    group="Take it apart",
    place=20,
    question="Which parts of the model speak for this token?",
    caption=(
        "A logit, the score that a token gets, is a sum: every head, MLP and bias adds something "
        "to it or takes something away."
    ),
    sentence="What every head, MLP and bias adds to the score of a token.",
    step="Every part writes into the stream that the guess is read from: see which of them speak "
    "for it.",
    words=(
        *("logit", "token", "residual stream", "unembedding", "embedding", "block", "head", "MLP"),
        *(
            "neuron",
            "feature",
            "bias",
            "norm",
            "frozen norm",
            "pattern",
            "value",
            "cross-attention",
        ),
    ),
    tour=(
        MODEL_ON_TOP,
        "Which logit is taken apart: that of a token, **Minus the logit of** another one, after a "
        "**Position** of the text.",
        "The grid of parts: blue or red, each adds or takes away. A click, or the list **Split "
        "further**, splits one.",
        DETAILS_BELOW,
        TOKEN_KEYS,
    ),
    opens_on="sentences",
)
