"""The page Features."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, TOKEN_KEYS, Page, has_blocks

FEATURES = "Features"
SUPERPOSITION = "Superposition"
VIEWS = (FEATURES, SUPERPOSITION)

PAGE = Page(
    name="features",
    title="Features",
    icon=":material/category:",
    group="Take it apart",
    place=55,
    question="Which patterns does the model notice?",
    caption="A dictionary cuts the stream, a token's vector on its way through the blocks, into "
    "features: patterns, few of which are active at a token.",
    sentence="The sparse features that the stream is made of; and why five of them fit into two "
    "dimensions.",
    step="A neuron often stands for several things: see the features that a dictionary finds in "
    "the stream.",
    kinds=("decoder",),
    opens_on="sentences",
    has_what_it_shows=has_blocks,
    words=(
        "feature",
        "transcoder",
        "residual stream",
        "activation",
        "block",
        "head",
        "MLP",
        "token",
        "logit",
        "unembedding",
        "norm",
    ),
    tour=(
        MODEL_ON_TOP,
        "**Features**: the list of the features of a dictionary, in the order that **Sort by** "
        "says.",
        "One feature: where in the text it is active, what it speaks for, which parts write it, "
        "and which others are alike.",
        "**Superposition**: a toy model that keeps five features in two dimensions, if they are "
        "sparse.",
        DETAILS_BELOW,
        TOKEN_KEYS,
    ),
    states=({"view": SUPERPOSITION},),
)
