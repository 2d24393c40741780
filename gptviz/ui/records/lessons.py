"""The page Lessons."""

from gptviz.ui.page import Page

PAGE = Page(
    name="lessons",
    title="Lessons",
    icon=":material/school:",
    group="From outside",
    place=20,
    question="Where do I begin?",
    caption="Each lesson takes some minutes, asks before it shows, and opens the live pages beside "
    "its text.",
    sentence="From “what is a token” to “which head moved the name”, step by step beside the live "
    "pages.",
    step="A short lesson leads through all of this, step by step.",
    has_model=False,
    reads_prompt=False,
    words=("token", "prompt", "head", "block"),
    tour=(
        "Each card is a lesson: its title begins it, and a tick says that it was done in this "
        "browser.",
        (
            "A lesson stands in the side bar while the page beside it is live; on a phone it "
            "stands above the page, and a tap "
            "on its title folds it. Its address keeps your answers."
        ),
        "At the bottom: **Write a lesson of your own**. **As one file** takes a lesson home.",
    ),
)
