"""How the page Over training computes its numbers, what they cannot tell, and the code that computes them."""

from __future__ import annotations

from collections.abc import Mapping

from gptviz.interp.over_training.measures import Question
from gptviz.ui.shell.subject import Subject, load_call

HOW = r"""
Every snapshot is opened, and each measure is computed by the same function as on its own page: see `MEASURES` in
`gptviz/interp/over_training/measures.py`. What is read is the same at every snapshot: about the first 2,048 tokens of the data
that were held out, the same random tokens, or the prompt above; the decoder of an encoder–decoder reads the answer of the model
as it was saved last, at every snapshot. The **sharpest change** is the largest difference between two
neighbouring snapshots, divided by their distance on the axis that is drawn (in steps, or in doublings of the steps); a distance
below the median counts as the median. **Half of the change**: of the series that differs most between the first and the last
snapshot, the first place where a straight line between two snapshots crosses the middle of both values. **Effective rank** is
$e^{H}$ with $H = -\sum_i p_i \ln p_i$ and $p_i = \sigma_i / \sum_j \sigma_j$ over the singular values $\sigma_i$ of a matrix (Roy
& Vetterli 2007)."""
LIMITS = """Between two snapshots nothing is known: a change may have been sharper than it looks, and two that fall between the
same snapshots may have come in the other order. That one number changes before another does not say that it is the cause. Only a
small part of the held-out data is read: a loss here may differ from that of the evaluation in the third digit."""


def code(subject: Subject, asked: Mapping[str, Question]) -> str:
    """The lines of `gptviz` that compute what the charts show."""
    lines = [f"histories = lm.over_training({name!r}{_arguments(question)})" for name, question in asked.items()]
    lines = [line.replace("histories", name.replace(".", "_"), 1) for line, name in zip(lines, asked, strict=True)]
    last = load_call(subject.lm).replace(f", step={subject.lm.step}", "")
    return "\n".join(
        ["import gptviz", "", f"lm = {last}", *lines, f"{next(iter(asked)).replace('.', '_')}.values  # [step, series]"]
    )


def _arguments(question: Question) -> str:
    given = {"prompt": question.prompt or None, "token": question.token, "against": question.against}
    return "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
