"""The page Context."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page

PAGE = Page(
    name="context",
    title="Context",
    icon=":material/width_wide:",
    group="Take it apart",
    place=90,
    question="How much of its context does the model use?",
    caption=(
        "How much worse guesses get with fewer tokens, in nats (the unit of surprise). In the map "
        "each row is a guess, each column a token left out: blue is worse."
    ),
    sentence="How many earlier tokens the model uses, and which of them each guess needs.",
    step="A guess comes from what was read before: see how much of it the model uses.",
    kinds=("decoder",),
    words=("token", "prompt", "embedding", "loss", "nat", "position encoding"),
    tour=(
        MODEL_ON_TOP,
        "The curve: how the loss falls as the model sees more of the text.",
        "The tokens: which of them the guess needs. **A token that is left out is** says what "
        "stands there instead.",
        DETAILS_BELOW,
    ),
    opens_on="sentences",
)
