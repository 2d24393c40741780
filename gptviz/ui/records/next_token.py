"""The page Next token."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, TOKEN_KEYS, Keys, Page

PAGE = Page(
    name="next_token",
    title="Next token",
    icon=":material/bar_chart:",
    group="From outside",
    place=30,
    question="What comes next, and how sure is the model?",
    caption=(
        "From left to right: how likely the model finds each token, how temperature, top-k and "
        "top-p change that, and the "
        "random draw."
    ),
    sentence="How likely each next token is, and how sampling changes that.",
    step="The guess is a draw: see how likely every token is, and what temperature does to the "
    "draw.",
    kinds=("decoder",),
    words=(
        "token",
        "logit",
        "softmax",
        "temperature",
        "top-k, top-p",
        "entropy",
        "nat",
        "bit",
        "perplexity",
    ),
    tour=(
        MODEL_ON_TOP,
        "The tokens of the text: click one to see the guess after it.",
        "The list: for each token its logit, its probability, and what temperature, top-k and "
        "top-p make of it.",
        "**Guess it yourself**: ten tokens of a text that the models have not seen, your bits per "
        "token beside theirs.",
        DETAILS_BELOW,
        TOKEN_KEYS,
        Keys("sampling_ledger", ("Escape",), "empties the search for a token"),
    ),
    states=({"guess": "True", "guesses": "*" * 10},),
    opens_on="sentences",
)
