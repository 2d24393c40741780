"""The page Compare."""

from gptviz.ui.page import DETAILS_BELOW, Page

NEXT_TOKEN = "Next token"
ATTENTION = "Attention"
EMBEDDINGS = "Embeddings"
LOGIT_LENS = "Logit lens"
ATTRIBUTION = "Attribution"
HEADS = "Heads"
WEIGHTS = "Weights"
ANSWERS = "Answers"
UNITS = "Units"
VIEWS = (
    *(NEXT_TOKEN, ATTENTION, EMBEDDINGS, LOGIT_LENS, ATTRIBUTION, HEADS),
    *(UNITS, WEIGHTS, ANSWERS),
)

PAGE = Page(
    name="compare",
    title="Compare",
    icon=":material/compare_arrows:",
    group="Take it apart",
    place=100,
    question="What is different?",
    caption=(
        "Two prompts, two steps of training, two models or two sets of edits side by side, A and "
        "B, and the difference B − A."
    ),
    sentence="Two prompts, steps of training, models or sets of edits side by side, and the "
    "difference.",
    step="A picture says more beside another one: compare two prompts, steps, models or edits, and "
    "see what is different.",
    kinds=("decoder",),
    opens_on="sentences",
    words=(
        *("token", "prompt", "step", "weights", "logit", "softmax", "attention", "head"),
        *("pattern", "embedding", "projection", "block", "MLP", "entropy", "nat"),
        *("training data", "interval", "loss", "standard error"),
        *("LoRA", "adapter", "rank", "singular value"),
    ),
    tour=(
        (
            "At the top: side A. Below it side B, with another prompt, step, model or set of "
            "edits. **Swap A and B** exchanges "
            "them."
        ),
        "The views: guesses, patterns, vectors, the whole stream or the weights of both, and the "
        "difference B minus A.",
        "Under **Answers**: sentences to complete, beside the share in the data that each model "
        "was trained on.",
        DETAILS_BELOW,
    ),
    states=tuple({"compared": view} for view in VIEWS[1:]),
)
