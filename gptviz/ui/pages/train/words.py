"""The details folded on the Train page: how training works, what its curves do not say, the code and the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs import checkpoints
from gptviz.ui.views.learning_curves import curve_of, loss_unit

HOW = r"""
Each step draws a batch and lets the model predict every next token of it at once (an encoder–decoder predicts the tokens of the
answers, a classifier one label for each text). The **loss** is the mean of $-\ln p$ in nats, where $p$ is the probability that
the model gave to what came. Backpropagation computes for every weight how the loss would change with it, the **gradient** $g$,
and the optimiser moves the weights the other way. AdamW, for example, moves them by

$$w \leftarrow w - \eta\Big(\frac{m}{\sqrt{v} + \epsilon} + \lambda w\Big)$$

where $m$ and $v$ are the running means of $g$ and $g^2$, $\eta$ is the learning rate and $\lambda$ the weight decay. A blind
guess among $V$ tokens, or labels, has the loss $\ln V$; a task's floor is its random part, which nobody can guess. The accuracy
of a classifier is shown beside the accuracy of a baseline that learned from the same texts by weighing how often each word
occurs (TF-IDF).

While a run goes on, at most one held-out row is evaluated for every ten rows trained on (or about 8,000 tokens, if that is
more), spread evenly over the held-out data; at the end all of it is evaluated. Where training rows come again and again, as
texts with labels do, the same number of training rows is evaluated too, without dropout: the model is better on these, and the
difference shows what it knows by heart.

Trained by `Trainer` in `gptviz/train/trainer.py`, in a process of its own (`gptviz/runs/queue.py`). That process keeps the run
in the model's folder (`gptviz/runs/training.py`), and this page reads it from there. Memory and time are estimated in
`gptviz/train/estimate.py`.
"""
LIMITS = (
    "The loss is measured per token: it cannot compare models with different tokens. A run with another seed would end a little "
    "differently. The attention and the map belong to the newest snapshot, which may be some steps old. From one snapshot to "
    "the next the map is turned to match the one before, since PCA does not say which way is up."
)


def code(name: str, commands: Sequence[str]) -> str:
    """How to get the same without a browser: the runs that the form describes, and the losses of the run watched."""
    lines = "\n".join(f"#   {command}" for command in commands)
    return f"""# in a shell, what the form now says:
{lines}

from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

folder = checkpoints.find({name!r})
for line in read_log(folder / "log.jsonl"):
    if line.kind == "evaluation":
        print(line.step, line.loss)"""


def validation_losses(name: str) -> LabelledArray:
    """The validation losses of a run, by step."""
    folder = checkpoints.find(name)
    curve = curve_of(folder)
    steps = tuple(f"{step:.0f}" for step in curve.validation_steps)
    return LabelledArray(curve.validation, (Axis("step", steps),), f"validation loss in {loss_unit([folder])}")
