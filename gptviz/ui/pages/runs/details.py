"""The details folded on the Runs page: how its numbers come about, what they do not say, and the code that reads them."""

from __future__ import annotations

from collections.abc import Sequence

HOW = r"""
The **loss** is the mean of $-\ln p$ over all held-out tokens that count, $p$ the probability the model gave to the token that
came (a classifier: over all texts, to the right label); in nats. $e^{\text{loss}}$ is the **perplexity**: among how many equally
likely tokens the model might as well be choosing. Guessing without knowing anything has the loss $\ln V$, $V$ the number of
tokens known, or of labels. A task has a **floor**: its
random part, which nobody can guess.

The pale curve is the loss of each batch as it was trained on (in long runs the mean of some), noisy since every batch differs;
the thin one is its mean over the last twentieth of the steps until then. Long curves are thinned out to some 1,000 points, which
keep every extreme.

Read from `log.jsonl` in the model's folder, which `gptviz/runs/log.py` writes; evaluated by `evaluate` in
`gptviz/train/evaluation.py`.
"""
LIMITS = (
    "A loss compares two models only on the same data in the same tokens: a token of four letters is harder to guess than one "
    "letter. One seed is one draw: a difference of a hundredth may be chance. And a low loss is no good text where the model "
    "sees the answer (the generator with its mask off)."
)


def code(names: Sequence[str]) -> str:
    """The lines of `gptviz` that read the same losses."""
    return f"""from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

for name in {list(names)!r}:
    log = read_log(checkpoints.find(name) / "log.jsonl")
    print(name, [(line.step, line.loss) for line in log if line.kind == "evaluation"])"""
