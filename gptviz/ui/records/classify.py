"""The page Classify."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page

WORDS = "Words"
ATTENTION = "Attention"
HELD_OUT = "Held-out texts"
OWN = "A file of yours"
VIEWS = (WORDS, ATTENTION, HELD_OUT, OWN)

PAGE = Page(
    name="classify",
    title="Classify",
    icon=":material/label:",
    group="From outside",
    place=50,
    question="Which words decide?",
    caption="The model gives the text a label. A bar for each word says how much the word counts "
    "for "
    "or against the label.",
    sentence="A text, its label, and how much each word counts for or against it.",
    step="The model gives a whole text a label: see which words decide.",
    kinds=("classifier",),
    words=("label", "logit", "bias", "softmax", "attention", "head", "dropout"),
    tour=(
        MODEL_ON_TOP,
        "The views: **Words** and **Attention** of this text, many **Held-out texts**, or **A "
        "file of yours**.",
        "Each bar says what a word does for the label.",
        DETAILS_BELOW,
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
