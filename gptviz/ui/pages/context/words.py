"""How the page Context is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.interp.explaining.context_use import How, most_data
from gptviz.ui.shell.subject import Subject, load_call

from .computed import MeasuredText, loss_by_position

HOW = r"""
The loss of a token is $-\ln p$, $p$ being the probability that the model gave it. In the map, it is measured once for the text as
it is and once for the text without one of its tokens; the cell is the difference. Two things can be meant by *without*:

- **replaced**: the embedding of the token becomes the mean of all embeddings of the vocabulary, which speaks for no token in
  particular. The token keeps its place, and so do all others.
- **removed**: the text is read without the token, and all that follow it move one place towards the beginning. To a model that
  counts places this changes more than the token.

For the loss by tokens read, each of up to 32 tokens, evenly spread over the text, is guessed from the last 1, 2, 4, … tokens
before it alone, as if the text began there; a token that the model puts before every text stays. The dotted line is the smallest
number from which on the mean loss stays within 5 % of what the whole text gains over a single token.

The loss over many texts is the mean, at each position, over rows of data that were held out of the model's training, of up to
8,192 tokens together, where these data are on this machine (`by_position`).

The last row is the model's own guess at what comes next: it is guessed, and not read. Computed by `left_out`, `by_window` and
`losses` in `gptviz/interp/explaining/context_use.py`.
"""
LIMITS = """Two tokens that say the same are worth little each, since the other one is still there. A text without one of its
tokens may be a text that the model has never met the like of, and it may be surprised by that rather than by what is missing.
All numbers are of this one text."""


def code(subject: Subject, text: MeasuredText, how: How) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    kept = f", kept={text.kept}" if text.kept else ""
    read = f"lm.seen(lm.encode({subject.prompt!r})).tolist()" if not text.left_off else f"{list(text.ids[:-1])}"
    over_data = ""
    if loss_by_position(subject.key) is not None:
        over_data = (
            f"\n\nrows = [row.tolist() for row in lm.rows(most={most_data(subject.lm.model)}) if len(row) > 1]\n"
            "by_position(lm.model, rows).values  # [position]"
        )
    return f"""import gptviz
from gptviz.interp.explaining.context_use import by_position, by_window, left_out, losses, with_guess

lm = {load_call(subject.lm)}
ids = with_guess(lm.model, {read})
left_out(lm.model, ids, {how!r}{kept}).rise  # [token guessed, token left out]
by_window(lm.model, ids{kept}).mean  # [tokens read]
losses(lm.model, ids)  # [token]{over_data}"""
