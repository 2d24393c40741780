"""The page Residual stream."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page, has_blocks

WRITTEN, LENGTHS, DIRECTIONS, MAP = "What is written", "Lengths", "Directions", "Map"
VIEWS = (WRITTEN, LENGTHS, DIRECTIONS, MAP)

PAGE = Page(
    name="stream",
    title="Residual stream",
    icon=":material/waves:",
    group="Take it apart",
    place=30,
    question="What happens to a token's vector on its way?",
    caption=(
        "The vector of a token runs through the whole model, and every attention and MLP writes something into it: how "
        "much, in which direction, and where it leads."
    ),
    sentence="What each part writes into a token's vector, and where the vectors of a text lie.",
    step="Every part writes into one vector per token: see how much each writes, and how the vectors turn.",
    kinds=("decoder", "encoder-decoder"),
    opens_on="sentences",
    has_what_it_shows=has_blocks,
    words=("residual stream", "vector", "block", "attention", "MLP", "norm", "cosine", "projection", "embedding"),
    tour=(
        MODEL_ON_TOP,
        "The views: what each part writes, the **Lengths** of the vectors, their **Directions**, and a **Map** of them.",
        "Choose a token to see it alone.",
        DETAILS_BELOW,
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
