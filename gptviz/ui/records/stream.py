"""The page Residual stream."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page, has_blocks

MAP = "Map"
WRITTEN = "What is written"
PROBES = "Probes"
STEERING = "Steering"
VIEWS = (WRITTEN, MAP, PROBES, STEERING)
# The view that links to a view of an earlier version open.
GONE = dict.fromkeys(("Lengths", "Directions"), MAP)

PAGE = Page(
    name="stream",
    title="Residual stream",
    icon=":material/waves:",
    group="Take it apart",
    place=30,
    question="What happens to a token on its way through the model?",
    caption=(
        "The vector of a token runs through the whole model, and every attention and MLP writes "
        "something into it: where "
        "that leads, and how much each of them writes."
    ),
    sentence="What each part writes into a token's vector, and where the vectors of a text lie.",
    step="Every part writes into one vector per token: see where the vectors lie, and how much "
    "each part writes.",
    kinds=("decoder", "encoder-decoder"),
    opens_on="sentences",
    has_what_it_shows=has_blocks,
    words=(
        "residual stream",
        "vector",
        "block",
        "attention",
        "MLP",
        "norm",
        "projection",
        "embedding",
    ),
    tour=(
        MODEL_ON_TOP,
        "The views: **What is written** by each part, a **Map** of the vectors after a layer, "
        "with their lengths, and "
        "**Probes**: what can be read from them. **Steering** adds a direction to them.",
        "Choose a token to see only that one.",
        DETAILS_BELOW,
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
