"""How the page Logit lens is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.components.lens_grid import LensCell
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.read import opening_code

from .computed import MOST_POSITIONS, LensRows

HOW = r"""
The residual stream $x$ is recorded after the embedding and after every sublayer, in the pass that makes the model's prediction
(the taps `resid_pre`, `resid_self`, `resid_mid` and `resid_post`; `interp/reading/layers.py`). To each row the model's own head
is applied: $\text{logits} = W_U \cdot \text{norm}(x)$, with the bias of the unembedding and the cap on logits where the model has
them, and $p = \text{softmax}(\text{logits})$ (nostalgebraist 2020). The head is `model.head`, so the last row is the model's own
guess. Entropy is $-\sum_i p_i \ln p_i$ over the whole vocabulary; the rank of the true token is one more than the number of
tokens with a larger logit. Rows and positions are read some at a time, and of each cell only its likeliest tokens, its entropy
and the rank are kept: `lens` and `course` in `gptviz/interp/reading/lens.py`.
"""
LIMITS = """The head was trained to read the end of the last block, not what is in between: an early row may hold the answer in
directions that the head does not read, and then looks as if the model knew nothing. What a row shows is what the head would make
of it, not what the next block makes of it."""


def code(subject: Subject, read: LensRows) -> str:
    """The lines of `gptviz` that compute the numbers of the grid."""
    and_source = "" if read.source is None else ", source"
    following = "" if read.following is None else f", following={read.following}"
    last = "" if len(read.ids) <= MOST_POSITIONS else f", last={MOST_POSITIONS}"
    last += ", blocks_only=True" if read.blocks_only else ""
    return f"""{opening_code(subject, read, "from gptviz.interp.reading.lens import lens")}
seen = lens(lm.model, ids{and_source}{following}{last})
seen.top, seen.probability  # [layer, position, k]: the likeliest tokens
seen.entropy, seen.rank, seen.true_probability  # [layer, position]"""


def code_of_cell(subject: Subject, read: LensRows, cell: LensCell) -> str:
    """The lines of `gptviz` that follow the likeliest tokens of a cell through all layers."""
    return f"""{code(subject, read)}

from gptviz.interp.reading.lens import course

followed = course(lm.model, seen, layer={cell.layer}, index={cell.index}, labels=lm.tokenizer.labels())
followed.probability.values  # [token, layer]"""
