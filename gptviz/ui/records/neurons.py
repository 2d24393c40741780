"""The page Neurons."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, TOKEN_KEYS, Page, has_neurons

PAGE = Page(
    name="neurons",
    title="Neurons",
    icon=":material/blur_on:",
    group="Take it apart",
    place=50,
    question="What is each neuron for?",
    caption=(
        "The neurons of a block's MLP, ranked; for one of them the texts that make it active, the "
        "tokens it speaks for, and "
        "what the model guesses if you set it by hand."
    ),
    sentence="What makes each neuron active, what it speaks for, and what changes if it is set by "
    "hand.",
    step="Between its heads a block has an MLP: see what its neurons are for, and set one by hand.",
    kinds=("decoder", "classifier"),
    opens_on="sentences",
    has_what_it_shows=has_neurons,
    words=(
        "neuron",
        "activation",
        "MLP",
        "expert",
        "router",
        "block",
        "token",
        "logit",
        "residual stream",
        "unembedding",
        "norm",
    ),
    tour=(
        MODEL_ON_TOP,
        "The list of the neurons of a **Block**, in the order that **Rank by** says.",
        "One neuron: where in the text it is active, what it speaks for, and what changes if you "
        "set it by hand.",
        DETAILS_BELOW,
        TOKEN_KEYS,
    ),
)
