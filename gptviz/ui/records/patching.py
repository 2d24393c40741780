"""The page Patching."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page, has_blocks

PAGE = Page(
    name="patching",
    title="Patching",
    icon=":material/healing:",
    group="Take it apart",
    place=70,
    question="Which part carries the answer?",
    caption=(
        "Put a piece of what the model computed for the first text (the prompt) into its pass over "
        "a second one: how much of the answer comes back?"
    ),
    sentence="Which piece of the model's computation carries an answer from one prompt to another.",
    step="Two prompts have two answers: find the piece of the computation that makes the "
    "difference.",
    kinds=("decoder",),
    has_what_it_shows=has_blocks,
    words=(
        *("patching", "token", "prompt", "logit", "residual stream", "block", "attention"),
        *("MLP", "head", "query", "key", "value", "pattern", "gradient"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The **Second text**, which differs from the prompt in a token or two, and the two answers: "
        "**Right answer**, **Wrong answer**.",
        "Each cell of the pictures is one piece, put from the first text into the second: how "
        "much of the answer comes back?",
        DETAILS_BELOW,
    ),
    opens_on="sentences",
)
