"""The page Attention."""

from gptviz.ui.page import ATTENTION_KEYS, MODEL_ON_TOP, Keys, Page, has_blocks

PAGE = Page(
    name="attention",
    title="Attention",
    icon=":material/grid_on:",
    group="What it is made of",
    place=30,
    question="What does each head look at?",
    caption=(
        "Every token (query) shares its attention among the tokens it may read (keys): point at "
        "one, or tap it, to see how much "
        "goes where."
    ),
    sentence="What each head looks at, for every block and head.",
    step="In attention the tokens read each other: see which token reads which, head by head.",
    has_what_it_shows=has_blocks,
    opens_on="sentences",
    words=(
        "query",
        "key",
        "value",
        "head",
        "block",
        "pattern",
        "softmax",
        "mask",
        "residual stream",
    ),
    tour=(
        MODEL_ON_TOP,
        "The small squares: every head of every block, in an **Order** of your choice. Click one "
        "to see it large.",
        "In the middle: the tokens; the pointer over one draws lines to those it reads. On the "
        "right: the pattern as a square.",
        "Choose a token that reads and one that is read: the arithmetic of that cell takes the "
        "place of the tokens.",
        *ATTENTION_KEYS,
        Keys("attention_explorer", ("+",), "puts the head beside the one that is shown"),
    ),
)
