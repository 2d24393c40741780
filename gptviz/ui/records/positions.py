"""The page Positions."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page

PAGE = Page(
    name="positions",
    title="Positions",
    icon=":material/straighten:",
    group="What it is made of",
    place=20,
    question="How does the model know where a token stands?",
    caption=(
        "Attention by itself compares tokens wherever they stand. Position encoding tells it "
        "where: below, how alike two positions are in it."
    ),
    sentence="How the model knows the order of its tokens.",
    step="An embedding does not say where its token stands: see how the model knows the order.",
    reads_prompt=False,
    opens_on="generator",
    words=(
        *("position encoding", "vector", "cosine", "learned positions", "sinusoidal positions"),
        *("rotary positions", "ALiBi", "query", "key", "mask"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The square compares each position with each other one, as this model sees them; **Beside "
        "it** shows another kind.",
        "**One wave at a time**: the numbers behind it; the slider **Dimension** chooses a wave.",
        DETAILS_BELOW,
    ),
)
