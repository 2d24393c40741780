"""What does the model write? Its text, token by token, to play, step, undo and steer."""

import streamlit as st

from gptviz.ui.pages import generate
from gptviz.ui.shell import pages, scrubber
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.sampling import PLAIN, sampling_controls

open_page(
    pages.GENERATE,
    "What does the model write?",
    "Grey: the prompt. The model drew the rest, token by token: a strong colour where it was sure. Click a token to go on there.",
)
subject = subject_bar()
view = st.container()
sampling = sampling_controls(temperature=0.8, seed=True)
writing = generate.writing(subject, sampling)

with view:
    speed = generate.transport(writing)
    generate.show(writing, speed)
    if writing.full:
        st.info(f"The text has {generate.MOST_TOKENS:,} tokens, the most this page keeps. Undo, restart or download it.")
    if writing.tree.dropped:
        st.caption(
            f"The tree keeps {generate.MOST_NODES:,} tokens: {writing.tree.dropped:,} of its oldest branches’ ends had to go."
        )
    if scrubber.steps(subject.key.name):
        st.caption("Each step of training writes anew from the prompt, with the same random numbers: only the model differs.")

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    anew = PLAIN | {"writing": None, "prompt": subject.default}
    generate.fork_button(writing)
    controls.try_this(
        "Always the likeliest",
        "At temperature 0 the text is soon caught in a loop: the likeliest token leads back to the likeliest text.",
        **anew | {"temperature": 0.0},
    )
    controls.try_this(
        "Too hot",
        "At temperature 2 pale chips are everywhere: tokens the model hardly believed in, and what follows makes no sense.",
        **anew | {"temperature": 2.0},
    )
    controls.try_this(
        "Only the two likeliest",
        "Top-k 2 keeps the words whole, yet the text does not get stuck; of what may come next all but two are struck out.",
        **anew | {"top_k": 2},
    )
    st.download_button(
        "Download the text",
        lambda: writing.document,
        "gptviz.txt",
        "text/plain",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )

details(
    how=r"""The model reads the text so far and gives every token of its vocabulary a *logit* $z_i$, a score. The next has
probability

$$p_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

where $T$ is the temperature, and top-k and top-p decide which tokens are kept (`gptviz.generate.sampling.ledger`). The token
drawn is put after the text, and the model reads on (`gptviz.generate.generation.Generation`). Keys and values of the tokens
already read are kept, so that a step computes the new token alone, until the text is longer than the context: then the model
sees the last tokens only, and reads them all anew at every step.

Everything drawn or taken stays in a tree (`gptviz.generate.tree.Tree`). A branch’s sum is $\sum_t \ln p(x_t \mid x_{<t})$ over
its tokens after the prompt, in nats: the logarithm of the probability that the model gives this text, at temperature 1 and with
nothing cut. Branches of different lengths compare by the mean per token. Going back to a branch gives the same tokens and the
same logits, to the bit. What a step attended to is the last row of each head’s pattern in the pass that gave its probabilities;
there is no other pass for the picture.

A token’s colour shows its probability at temperature 1 over all tokens, whatever the settings: how sure the *model* was. A new
setting holds from the next token on. The random number of a place depends on the seed and the place alone: undo a step, and it is
drawn again.""",
    limits="""A high probability says that the model expected the token, not that the token is right, and a high sum is no sign of
a good text: the loops of temperature 0 have high ones. Attention says where a step looked, not what it made of it, and the mean
of all heads hides what one of them does.""",
    key="generate",
)
