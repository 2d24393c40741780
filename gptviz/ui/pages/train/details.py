"""The details folded on the Train page: how training works, what its curves do not say, the code and the numbers."""

from __future__ import annotations

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs import checkpoints
from gptviz.ui.views.learning_curves import curve_of

HOW = r"""
Each step draws a batch, lets the model predict every next token of it at once (an encoder–decoder those of the answers, a
classifier one label for each text), and takes the mean of $-\ln p$, $p$ the probability it gave to what came: the **loss**, in
nats. Backpropagation says for every weight how the loss would
change with it, the **gradient** $g$, and the optimiser moves the weights the other way. AdamW, for one, by

$$w \leftarrow w - \eta\Big(\frac{m}{\sqrt{v} + \epsilon} + \lambda w\Big)$$

with $m$ and $v$ the running means of $g$ and $g^2$, $\eta$ the learning rate and $\lambda$ the weight decay. Guessing among $V$
tokens, or labels, without knowing anything has the loss $\ln V$; a task's floor is its random part, which nobody can guess.
Beside a classifier's accuracy stands that of a baseline trained on the same texts, which weighs how often each word occurs
(TF-IDF).

While a run goes on, one row held out is evaluated for every ten trained on, at most (or about 8,000 tokens, where that is more),
evenly spread over all that is held out; all of it is read at the end. Where rows come again and again, as texts with labels do,
as many of these are evaluated too, without dropout: how much better a model is on them is what it knows by heart.

Trained by `Trainer` in `gptviz/train/trainer.py`, in a process of its own (`gptviz/runs/queue.py`), which keeps the run in the
model's folder (`gptviz/runs/training.py`); this page reads it there. Memory and time are estimated in `gptviz/train/estimate.py`.
"""
LIMITS = (
    "The loss is measured in tokens: models with other tokens cannot be compared by it. One seed is one draw. The attention and "
    "the map are those of the newest snapshot, which may be some steps old; between two the map is turned so that it lies on the "
    "one before, since PCA does not say which way is up."
)


def code(name: str, command: str) -> str:
    """How to get the same without a browser: the run that the form describes, and the losses of the run watched."""
    return f"""# in a shell, what the form now says:
#   {command}

from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

folder = checkpoints.find({name!r})
for line in read_log(folder / "log.jsonl"):
    if line.kind == "evaluation":
        print(line.step, line.loss)"""


def validation_losses(name: str) -> LabelledArray:
    """The validation losses of a run, by step."""
    curve = curve_of(checkpoints.find(name))
    steps = tuple(f"{step:.0f}" for step in curve.validation_steps)
    return LabelledArray(curve.validation, (Axis("step", steps),), "validation loss in nats per token")
