"""The page Gradients."""

from gptviz.ui.page import DETAILS_BELOW, Page

BLOCKS = "Gradients"
STEP = "One step"
VIEWS = (BLOCKS, STEP)

PAGE = Page(
    name="gradients",
    title="Gradients",
    icon=":material/trending_down:",
    group="What it is made of",
    place=40,
    question="Can the first block learn, too?",
    caption=(
        "The gradient says how to lower the loss. It passes every block from the last to the "
        "first: in fresh models, or back to one weight of a trained one."
    ),
    sentence="How much of the gradient reaches the first block; and one step of learning, from the "
    "loss back to one weight.",
    step="A model is a stack of many blocks: see why it can be trained at all.",
    has_model=False,
    reads_prompt=False,
    words=(
        "loss",
        "gradient",
        "weights",
        "optimiser",
        "learning rate",
        "block",
        "residual stream",
        "residual connection",
        "pre-norm, post-norm",
        "norm",
        "float32",
    ),
    tour=(
        "At the top: **Depth (blocks)** of the fresh models, and how large their **Initial "
        "weights** are.",
        "On the left: how much of the gradient reaches each block, from right to left; a line for "
        "each kind of connection.",
        "On the right: the stream or the gradient of the weights, for comparison (**Beside it**).",
        "**One step**: the loss of a model on your text, followed back to one of its weights, and "
        "the step of training.",
        DETAILS_BELOW,
    ),
    states=({"view": STEP},),
)
