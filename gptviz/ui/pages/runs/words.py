"""The details folded on the Runs page: how its numbers are computed, what they do not say, and the code that reads them."""

from __future__ import annotations

from collections.abc import Sequence

HOW = r"""
The **loss** is the mean of $-\ln p$ over all held-out tokens that count, in nats, where $p$ is the probability that the model
gave to the token that came (for a classifier: the mean over all texts, with the probability of the right label).
$e^{\text{loss}}$ is the **perplexity**: a choice among this many equally likely tokens would be as hard. A blind guess has the
loss $\ln V$, where $V$ is the number of tokens in the vocabulary, or of labels. A task has a **floor**: its random part, which
nobody can guess.

The pale curve is the loss of each training batch (in long runs the mean of several). It is noisy, because every batch is
different. The thin curve is its mean over the last twentieth of the steps so far. Long curves are thinned out to about 1,000
points, which keep every extreme.

Read from `log.jsonl` in the model's folder, which `gptviz/runs/log.py` writes; evaluated by `evaluate` in
`gptviz/train/evaluation.py`.
"""
LIMITS = (
    "Losses can be compared only between models with the same data and the same tokens: a token of four letters is harder to "
    "guess than one letter. Each run has one seed: a difference of a hundredth may be chance. And a low loss does not mean a "
    "good text if the model sees the answer (the generator with its mask off)."
)


def code(names: Sequence[str]) -> str:
    """The lines of `gptviz` that read the same losses."""
    return f"""from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

for name in {list(names)!r}:
    log = read_log(checkpoints.find(name) / "log.jsonl")
    print(name, [(line.step, line.loss) for line in log if line.kind == "evaluation"])"""
