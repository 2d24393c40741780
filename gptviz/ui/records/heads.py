"""The page Heads."""

from gptviz.ui.page import ARROWS, DETAILS_BELOW, MODEL_ON_TOP, Keys, Page, has_blocks

DOES = "What each head does"
WHERE = "Where it does most"
READS = "Which head reads which"
VIEWS = (DOES, WHERE, READS)

PAGE = Page(
    name="heads",
    title="Heads",
    icon=":material/manage_search:",
    group="Take it apart",
    place=40,
    question="What does each head do?",
    caption=(
        "Every head gets a score for each of a few things that heads are known to do. Choose a "
        "score, then a head, and see "
        "its pattern."
    ),
    sentence="What each head does: every head scored, and which heads read each other.",
    step="A model has many heads: find those that do what heads are known to do.",
    has_what_it_shows=has_blocks,
    reads_prompt=False,
    words=(
        *("head", "block", "pattern", "query", "key", "value"),
        *("induction head", "sink", "entropy", "eigenvalue", "composition", "residual stream"),
    ),
    tour=(
        MODEL_ON_TOP,
        "**What each head does**: every head has a cell, and its colour is the **Score** that is "
        "chosen above.",
        "Click a head to see all its scores and its pattern. The other views: the texts **Where "
        "it does most**, and **Which head "
        "reads which**.",
        Keys(
            "cell_grid", (*ARROWS, "Home", "End"), "lead from head to head; **Enter** chooses one"
        ),
        Keys("head_pattern", (*ARROWS, "Home", "End"), "lead from cell to cell of its pattern"),
        DETAILS_BELOW,
    ),
    opens_on="induction",
    states=({"view": WHERE}, {"view": READS}),
)
