"""The page Logit lens."""

from gptviz.ui.page import ARROWS, DETAILS_BELOW, MODEL_ON_TOP, Keys, Page

PAGE = Page(
    name="lens",
    title="Logit lens",
    icon=":material/layers:",
    group="Take it apart",
    place=10,
    question="What would the model guess if it stopped here?",
    caption=(
        "Each row is a layer, each column a token that was read. In a cell: the next token that "
        "the model would guess if its output came right after that layer."
    ),
    sentence="What the model would guess if it stopped after any of its layers.",
    step="A guess is not made at once: see it come about, layer by layer.",
    kinds=("decoder", "encoder-decoder"),
    words=(
        *("token", "residual stream", "block", "attention", "MLP", "norm"),
        *("unembedding", "logit", "softmax", "entropy", "nat"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The grid: a row for each layer, a column for each token. A cell has the guess, if the "
        "model stopped there.",
        "Click a cell to see the other likely tokens there.",
        DETAILS_BELOW,
        Keys("lens_grid", (*ARROWS, "Home", "End"), "lead from cell to cell"),
        Keys("lens_grid", ("Enter", "Escape"), "opens a cell, and closes it"),
    ),
    states=({"rows": "every sublayer"},),
    opens_on="sentences",
)
