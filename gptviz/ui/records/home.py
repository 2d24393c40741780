"""The page Home."""

from gptviz.ui.page import MODEL_ON_TOP, Keys, Page

PAGE = Page(
    name="home",
    title="Home",
    icon=":material/home:",
    group="From outside",
    place=10,
    question={
        "decoder": "How does a transformer guess the next token?",
        "classifier": "How does a transformer tell what a text is?",
        "encoder-decoder": "How does a transformer answer one text with another?",
    },
    caption={
        "decoder": (
            "Text becomes tokens, the model reads them, and each token it knows gets a "
            "probability. Click a guess to take it."
        ),
        "classifier": "Text becomes tokens, the model reads them all at once, and each label it "
        "knows gets a probability.",
        "encoder-decoder": "Text becomes tokens, one half of the model reads them, the other "
        "writes the answer token by token.",
    },
    sentence="A prompt becomes tokens; tokens become a guess at the next one.",
    opens_on="sentences",
    words=(
        *("token", "prompt", "embedding", "residual stream", "block", "attention"),
        *("head", "MLP", "norm", "logit", "softmax"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The map: the tokens enter at one end, and guesses leave at the other. Click a box to see "
        "what is computed in it.",
        "Below it, a model that others trained on all kinds of texts, in one click.",
        Keys(
            "model_map", ("ArrowLeft", "ArrowRight", "Enter"), "lead from box to box, and open one"
        ),
        Keys("model_map", ("Escape",), "shuts what is open"),
    ),
)
