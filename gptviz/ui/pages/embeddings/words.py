"""How the page Embeddings is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.language_model import LanguageModel
from gptviz.ui.shell.subject import opening, scrubber
from gptviz.ui.views import projections

from .computed import ProjectionChoice, way_back

HOW = (
    r"""
- **PCA**: the rows of the matrix are centred, and seen along the eigenvectors of their covariance with the largest eigenvalues.
  Every snapshot of a model is seen along the axes of the model as it was saved last, from the same origin. So a token whose
  vector did not change does not move, even if the others do. The share of the variance is that of the step shown.
- **t-SNE** (scikit-learn): perplexity 20 (a third of the tokens, where they are few), 1,000 iterations.
- **UMAP** (umap-learn): its own defaults, 15 neighbours.
- t-SNE and UMAP begin with the picture by PCA, made small, plus a little noise that depends on the seed; the result is turned to
  match the PCA picture. The picture of an earlier step of training begins with the finished picture of a later step, and so on
  back from the model as it was saved last (through every snapshot of a small vocabulary, through some of a large one); it is
  turned to match that picture. So each step has one picture, in whatever order you visit the steps, and where the vectors
  changed little from step to step, the picture changes little too.
- **Neighbours**: the cosine $a \cdot b / (|a|\,|b|)$ of the full vectors, over all tokens.

Where there are more than 5,000 tokens, t-SNE and UMAP place a sample of so many, the same for every seed. PCA places all tokens,
and the sample is drawn, with the tokens that the page is about.
Computed by `project`, `neighbours` and `trustworthiness` in `gptviz/interp/reading/embeddings.py`.
"""
    + projections.HOW_STABLE
)
LIMITS = (
    "Two or three dimensions cannot hold what many can: points that lie on each other may be different, and with t-SNE and UMAP "
    "distances, sizes and empty space mean nothing. And a token's vector is only where the model begins: what the token means "
    "in a text is worked out in the blocks."
)
WAVES_HOW = r"""
A column of numbers $x_0 \dots x_{p-1}$, one for each number below the modulus $p$, is the sum of a constant and of waves
$\cos(2\pi k n / p)$ and $\sin(2\pi k n / p)$ of the frequencies $k = 1 \dots \lfloor p/2 \rfloor$ (a Fourier transform). The
share of a frequency is what its two waves hold of the variance of all columns together.

- **Embedding**: the columns are the numbers of the token vectors.
- **Neurons**: those of the first block after the sign =, along the first number, with every second number.
- **Logits**: along the answers, after each of the $p^2$ sums.

The frequencies that a model uses are the fewest that hold 95 % of its logits. What is left without some: the embedding of the
numbers is taken apart, and put together again with the constant and the frequencies that are left; then all sums are asked.
Computed in `gptviz/interp/reading/waves.py`. Source: N. Nanda et al., “Progress measures for grokking via mechanistic
interpretability” (2023).
"""
WAVES_LIMITS = (
    "That a model is made of few waves does not say how it adds them: the neurons multiply them, which these bars do not show. "
    "The waves of the logits are measured after the numbers of the task alone."
)


def waves_code(lm: LanguageModel) -> str:
    """The lines of `gptviz` that compute the bars, and what is left without the waves."""
    return f"""{opening(lm, "from gptviz.interp.reading import waves")}
powers = waves.powers(lm.model, lm.task)
powers.values  # [part, frequency]
waves.accuracy(lm.model, lm.task, keep=waves.used(powers))"""


def code(lm: LanguageModel, view: ProjectionChoice, token: int) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    settings = f"{view.method!r}, dimensions={view.dimensions}" + ("" if view.method == "PCA" else f", seed={view.seed}")
    opened = f"""{opening(lm, "from gptviz.interp.reading import embeddings")}
rows, labels = embeddings.vectors(lm.model, {view.space!r}), lm.tokenizer.labels()  # rows [vocab_size, d_model]
"""
    if lm.step is not None:
        opened += f"last = embeddings.vectors(gptviz.load({lm.name!r}).model, {view.space!r})  # its axes serve every step\n"
        settings += ", reference=last"
    if lm.step is None or view.method == "PCA":
        placed = f"embeddings.project(rows, labels, {settings}).points.values  # [token, component]"
    else:
        steps = way_back(scrubber.steps(lm.name), lm.step, len(lm.tokenizer.labels()))
        placed = f"""picture = None
for step in {steps}:  # each begins with the picture of the one before; None is the model as it was saved last
    of_step = embeddings.vectors(gptviz.load({lm.name!r}, step=step).model, {view.space!r})
    picture = embeddings.project(of_step, labels, {settings}, begin=picture)
picture.points.values  # [token, component]"""
    return f"""{opened}{placed}
embeddings.neighbours(rows, labels, token={token}).similarity.values  # [neighbour]"""
