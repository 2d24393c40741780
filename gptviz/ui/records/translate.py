"""The page Translate."""

from gptviz.ui.page import ATTENTION_KEYS, DETAILS_BELOW, Page

CROSS_ATTENTION = "Cross-attention"
NEXT_TOKEN = "Next token"
BEAM_SEARCH = "Beam search"
VIEWS = (CROSS_ATTENTION, NEXT_TOKEN, BEAM_SEARCH)

PAGE = Page(
    name="translate",
    title="Translate",
    icon=":material/translate:",
    group="From outside",
    place=60,
    question="What does the model read while it writes?",
    caption=(
        "Before it writes a token of its output (query) it looks into the source (keys): the "
        "stronger the line, the more it "
        "reads."
    ),
    sentence="Which part of one text a model reads while it writes another.",
    step="The answer is written token by token: see which part of the source each of them reads.",
    kinds=("encoder-decoder",),
    words=(
        "encoder",
        "decoder",
        "cross-attention",
        "query",
        "key",
        "head",
        "logit",
        "softmax",
        "beam search",
    ),
    tour=(
        "At the top: the model, and the source that it reads.",
        (
            "The views: what the output reads in the source (**Cross-attention**), the **Next "
            "token** anywhere, or all outputs "
            "that a search looked at (**Beam search**)."
        ),
        DETAILS_BELOW,
        *ATTENTION_KEYS,
    ),
    states=tuple({"view": view} for view in VIEWS[1:]),
)
