"""The page Circuit."""

from gptviz.ui.page import ARROWS, DETAILS_BELOW, MODEL_ON_TOP, Keys, Page

GUESS = "One guess"
WEIGHTS = "Weights of a task"
VIEWS = (GUESS, WEIGHTS)

PAGE = Page(
    name="circuit",
    title="Circuit",
    icon=":material/account_tree:",
    group="Take it apart",
    place=80,
    question="Which parts make this guess?",
    caption=(
        "Parts of the model, or its single weights, joined by lines: from the tokens of the text "
        "to the logit, the score of the next token."
    ),
    sentence="The parts that one guess owes most to, as a graph from its tokens to the logit.",
    step="Parts work together: see which of them make one guess, and what each reads of the "
    "others.",
    kinds=("decoder",),
    words=(
        *("circuit", "logit", "head", "MLP", "value", "key"),
        *("query", "pattern", "norm", "bias", "residual stream", "mean ablation"),
        *("feature", "transcoder"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The graph: from the tokens at one end to the logit at the other, only with the parts "
        "that matter most.",
        "A box shows what it gives and what it reads. **Boxes** says how many there are at most. "
        "Choose a box to see its lines in front; pin boxes to keep theirs there, or to make a "
        "group "
        "of them.",
        "**Weights of a task**, of a model that has learned one: the single weights behind all "
        "its answers. It is worth looking at in a model that was trained with few weights.",
        DETAILS_BELOW,
        Keys("circuit_graph", (*ARROWS, "Escape"), "lead from box to box, and let it go"),
        Keys("circuit_graph", ("Enter", "p"), "opens a box, and pins it"),
    ),
    opens_on="sentences",
    states=({"model": "quotes", "view": WEIGHTS},),
)
