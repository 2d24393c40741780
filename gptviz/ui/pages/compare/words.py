"""The words of the page Compare: what A and B are, the code, and how it is computed."""

from __future__ import annotations

from gptviz.figures.kit.format import counted
from gptviz.ui.pages.compare.show import ViewNumbers
from gptviz.ui.pages.compare.sides import Sides
from gptviz.ui.shell.subject import Subject, load_call, scrubber
from gptviz.ui.widgets import escaped

HOW = r"""
The same quantity is computed for A and for B, each in a pass of its own model, and subtracted: $B - A$, cell by cell, in float64.
Swapping the two changes the sign of every difference and nothing else; a side differs from itself by exactly 0. A and B share one
scale; the scale of the difference ends at its largest size on both sides, and 0 is the background.

- **Next token**: the softmax of the logits after the last token of each text. How much probability would have to move is
  $\frac12 \sum_i |p^B_i - p^A_i|$.
- **Attention**: the pattern of the same head in both. How much of it moved is half the sum of $|B - A|$ along a row, averaged
  over the rows.
- **Embeddings**: the vectors of all tokens that both have, along the principal axes of both together. Two steps of one model
  share their directions. Two models do not: both are centred, brought to a mean square length of 1, and turned onto each other
  (orthogonal Procrustes, Schönemann 1966). Distances are over all dimensions.
- **Logit lens**: the model's own head applied to the stream after every layer.
- **Attribution**: what each part adds to the logit of one token, with norms frozen at their value in that pass.
- **Answers**: the probability of a word is the product of that of its tokens. Its share in the data is how often it came after
  the same words there. The rows of a task are drawn again as the run drew them (a batch is a hash of seed and step), up to the
  step on screen; a text is counted as a whole. The interval has the shares from which this one is at most 1.96 standard
  deviations away (Wilson 1927).
- **Rows**: the mean of $-\ln p$ over the tokens of a sentence or line, each guessed after as much of the text before as the
  context holds; of a task, over the tokens that count. Rows are spread evenly over what A could be trained on and what was held
  out (64 of each). A row counts as read as often as a batch asked for all of its tokens. The standard error of the difference of
  two means is $\sqrt{s_1^2/n_1 + s_2^2/n_2}$.
- **Heads**: scores of each head over its own text, or over repeated random tokens where the text repeats nothing.
- **Weights**: the Frobenius norm of $B - A$ for every matrix, as a share of that of $A$; the table has the norms of $A$, of $B$
  and of $B - A$ themselves. The singular values are those of $B - A$: a change of rank $r$ has $r$ of them above 0. Of a LoRA
  adapter $B - A$ is its strength times the product of its two factors. The losses along the strength are on data held out of
  both trainings. A guess moves by $\sum_i p^A_i \ln(p^A_i / p^B_i)$, in nats, after each token of the text on screen.

Computed by `gptviz/interp/compare.py`, which asks the functions behind the other pages.
"""
LIMITS = (
    "Why two sides differ. The same number means the same head only in two steps or edits of one model: head 3 of another model "
    "is another head. Where two prompts have different tokens, cells are compared by their place in the text. And a small "
    "difference of a distribution may be a large one of the text that is drawn from it. Rows that were held out may be harder by "
    "themselves, as another part of a play with other names is: how they differ from rows that were read is not memory alone."
)


def said(sides: Sides) -> str:
    """A and B by name, and in what they differ, as Markdown."""
    a, b = sides.a, sides.b
    if sides.are_equal:
        return "A and B are the same model with the same text: every difference is 0."
    differ = [
        what
        for what, first, second in (
            ("the model", a.key.name, b.key.name),
            ("the step of training", a.key.step, b.key.step),
            ("the edits", a.key.edits, b.key.edits),
            ("the prompt", a.prompt, b.prompt),
        )
        if first != second
    ]
    what = " and ".join(differ) or "what is read of the prompt"
    return f"**A**: {_named(a)} · **B**: {_named(b)}. They differ in {what}."


def _named(one: Subject) -> str:
    step = " as saved last" if one.key.step is None else f" after {counted(one.key.step, 'step')}"
    return escaped(f"{one.key.title}{step if scrubber.steps(one.key.name) else ''}")


def code(sides: Sides, shown: ViewNumbers) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    lines = ["import gptviz", "from gptviz.interp import compare", ""]
    for name, one in (("a", sides.a), ("b", sides.b)):
        lines.append(f"{name} = {load_call(one.lm)}" + ("" if shown.of_models else f".side({one.prompt!r})"))
    return "\n".join([*lines, f"compared = {shown.call}", "compared.a, compared.b, compared.difference  # B − A"])
