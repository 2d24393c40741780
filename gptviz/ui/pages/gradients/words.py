"""How the page Gradients is computed, what it cannot show, and its code."""

from __future__ import annotations

from .computed import HEADS, TEXT, Setup

HOW = r"""
For each kind of residual connection there is one model, all with the same untrained matrices; each reads three lines of
Shakespeare. The loss is the one that training lowers: the mean cross-entropy of every next character. The stream $x_i$ enters
block $i$, $x_n$ leaves the last block, and backpropagation gives

$$
\frac{\partial L}{\partial x_i} = J_i^\top J_{i+1}^\top \cdots J_{n-1}^\top \frac{\partial L}{\partial x_n},
\qquad J_i = \frac{\partial x_{i+1}}{\partial x_i}.
$$

The picture shows the root mean square of the numbers of this gradient: how large one of them typically is.

- **none**: $J_i$ is the Jacobian of the sublayers alone. Where it shrinks a vector, a product of many shrinks it exponentially.
- **norm-only**: the norm brings each sublayer's output back to its old size, and multiplies the gradient by the same factor. So
  the size holds longer, but what the first block read still has to pass through every sublayer.
- **plain**: $J_i = (I + \ldots)(I + \ldots)$. The identity $I$ passes the gradient on, whatever the sublayers do, but nothing
  limits the sum: with large weights both the stream and the gradient grow exponentially.
- **pre-norm**: the same identity, and each sublayer reads a normalised stream, so that the sum grows slowly (Xiong et al. 2020).
- **post-norm**: each sum is divided by its size. At small weights that size is 1 and nothing is lost; the larger the
  sublayers' part, the smaller the share of the identity.
- **branch-norm**: the identity again, and what a sublayer computed is brought to 1 before it is added, however small it was. In
  the first blocks, where the stream is small and with it what a sublayer computes, this makes the gradient many times larger.
- **double-norm**: each sublayer reads a normalised stream, and what it computed is brought to 1 before it is added.

Residuals in which attention and MLP read the same stream (parallel) are left out: here their lines lie nearly on that of
pre-norm.

Embeddings begin with numbers of about 0.03. The first norm that they reach brings them to 1: it makes whatever passes through it
about 35 times larger, and the gradient too. This is the step of post-norm at block 0. Pre-norm, branch-norm and double-norm have
a final norm, the others have none (as they were published): for the same reason the gradient of pre-norm starts larger.

Matrices are drawn from $N(0, 0.02^2)$, those into the stream divided by $\sqrt{2n}$ (Radford et al. 2019), then multiplied as
you chose. Everything is computed in float64, which goes down to $10^{-308}$. The dotted line marks the smallest number above 0
in float32, in which models are trained. Computed by `compare` in `gptviz/interp/reading/gradients.py`, from the values recorded
by the taps of the forward pass.
"""
LIMITS = (
    "Whether a model learns. A gradient may arrive and still point nowhere useful. Adam divides each weight’s gradient by its "
    "usual size, so small gradients can be enough, as long as float32 can hold them. The picture shows the first step on one "
    "text: training changes it. And where sublayers begin near zero, as with the default weights, every residual connection "
    "looks better than it is: the blocks hardly do anything yet."
)


def code(chosen: Setup) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    return f"""import torch

from gptviz.interp.reading import gradients
from gptviz.model import Config
from gptviz.text import CharTokenizer

text = {TEXT!r}
tokenizer = CharTokenizer(text)
ids = torch.tensor([tokenizer.encode(text).ids])
config = Config(
    vocab_size=tokenizer.vocab_size,
    context_length=ids.shape[1],
    d_model={chosen.width},
    n_layer={chosen.depth},
    n_head={HEADS},
    activation={chosen.activation!r},
)
sizes = gradients.compare(
    config, ids[:, :-1], ids[:, 1:], seed={chosen.seed}, std={chosen.std}, shrink={chosen.shrink}
)  # [quantity, residual, block]
gradients.reaching(sizes)  # what share reaches block 0"""
