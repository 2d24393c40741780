"""The page Switch off."""

from gptviz.ui.page import ARROWS, DETAILS_BELOW, MODEL_ON_TOP, Keys, Page, has_blocks

PAGE = Page(
    name="switch_off",
    title="Switch off",
    icon=":material/power_settings_new:",
    group="Take it apart",
    place=60,
    question="What does the model do without a part of it?",
    caption="Click heads and MLPs to switch them off: see the guess, the loss and the text with "
    "them "
    "and without.",
    sentence="The model without a head, an MLP, a neuron or its positions.",
    step="Which parts does a guess need? Switch some off, and see what changes.",
    has_what_it_shows=has_blocks,
    words=(
        *("block", "head", "attention", "MLP", "neuron", "pattern"),
        *("position encoding", "residual stream", "token", "loss", "nat", "temperature"),
    ),
    tour=(
        MODEL_ON_TOP,
        "The grid of all heads and MLPs: click one to switch it off, and again to bring it back.",
        "Below: the guesses with and without, side by side. All other pages show the model with "
        "these edits too.",
        DETAILS_BELOW,
        Keys("cell_grid", ARROWS, "lead from part to part; **Enter** switches one"),
    ),
    states=({"edits": "blocks.1.attention.head.3"},),
    opens_on="sentences",
)
