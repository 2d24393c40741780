"""The page Tokens."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, TOKEN_KEYS, Page

CUT = "One text"
COMPARE = "Two tokenizers"
LEARN = "Learn one"
VIEWS = (CUT, COMPARE, LEARN)

PAGE = Page(
    name="tokens",
    title="Tokens",
    icon=":material/content_cut:",
    group="From outside",
    place=25,
    question="What does the model read instead of letters?",
    caption=(
        "Each box is a token, with its number in the vocabulary: all that the model reads. "
        "Colour and line say whether it is a whole word or a part of one."
    ),
    sentence="A text as tokens: how it is cut, what languages cost, and how the pieces are "
    "learned.",
    step="A model reads no letters, but numbers: see how a text is cut into them.",
    words=(
        "token",
        "prompt",
        "tokenizer",
        "vocabulary",
        "byte",
        "byte-pair encoding",
        "merge",
        "special token",
    ),
    tour=(
        MODEL_ON_TOP,
        "**One text**: its tokens; click one to see how its word was put together, merge by merge.",
        "**Two tokenizers**: the same text cut by another one, of any model, of files on this "
        "machine or learned here, and what "
        "eight languages, numbers and code cost with each.",
        "**Learn one**: byte-pair encoding on a text of yours, as a film of its merges; then "
        "train a model with it.",
        DETAILS_BELOW,
        TOKEN_KEYS,
    ),
    opens_on="bpe",
    states=({"view": COMPARE}, {"view": LEARN}),
)
