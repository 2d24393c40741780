"""The page Open a model."""

from gptviz.ui.page import Page

PAGE = Page(
    name="open_model",
    title="Open a model",
    icon=":material/folder_open:",
    group="Your models",
    place=10,
    question="Which model do you want to look into?",
    caption=(
        "Those that came with gptviz, and those that others made: on this machine, or on the "
        "Hugging Face hub. Every page is then about the one you open."
    ),
    sentence="Open a model of another program: from this machine, or from the Hugging Face hub.",
    step="All this works for models that others trained, too: open one of them.",
    has_model=False,
    reads_prompt=False,
    words=("weights", "parameter", "tokenizer", "hub", "GGUF", "licence"),
    tour=(
        "**On this machine**: models of other programs that are here already.",
        "**From the hub**: type a name, and it says how large the model is before anything is "
        "loaded.",
        "**Opened before**: your models, which you can remove.",
    ),
)
