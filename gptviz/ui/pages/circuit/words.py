"""How the page Circuit is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.ui.shell.subject import Subject, opening

from .computed import CircuitChoice

HOW = r"""**An edge** (a line) is what the lower box adds to what the upper one reads, in units of the logit: what it wrote into
the stream, times what the logit gains from that by way of the boxes above it. Patterns and norms are *frozen* (kept as they
were in this run), which makes everything between two boxes linear, so sums are exact:

- The boxes below the **logit** and the biases sum to it.
- A **head** reads in three ways. Its *value* edges, $\sum_k \text{pattern}_{qk} \cdot x_k W_V W_O$, sum to what it gives. What it
  gains by its pattern, beside reading all tokens alike, is split over the scores that made the pattern, and each score over those
  who wrote its *key* and its *query*. The split follows the softmax from equal scores to those of this run (integrated
  gradients): a plain gradient is 0 where a head is sure.
- An **MLP** is not linear. Each neuron's $f(x) = r \cdot x$ keeps its ratio $r$ of this run; in a gated MLP each factor gets half
  of the product. Its edges then sum to what it gives; what the MLP would do *without* one of them is another question, which the
  check answers.

With **Beyond the mean**, what counts of a box is what it wrote beyond its mean over the positions of this text; the means count
among the biases. What a box writes everywhere alike says nothing about this place, and in large models it is most of what is
written.

**Which boxes are shown.** Walk from the logit downwards, at every box choosing a line at random in proportion to what it adds,
without sign. The share is the probability that this walk stays among the boxes shown until it ends at a token, a position or a
bias. The graph takes in the lines that carry most, until the share that you ask for is reached, or the number of boxes.

**A group** is drawn as one box: each of its lines is the sum of those of its members, and its number is what they together give
to boxes outside of it.

**The check** runs the model with every part that is not shown, at every position, replaced by its mean over the positions of this
text (mean ablation); nothing is frozen there.

In `gptviz.interp.explaining.circuit`, `circuit_reads` and `circuit_check`. Sources: Elhage et al. 2021; Syed et al. 2023 (edge
attribution patching); Kramár et al. 2024 (AtP*); Achtibat et al. 2024 (AttnLRP); Wang et al. 2023 (mean ablation)."""
LIMITS = """The graph is about one guess after one text; another text may use other parts. Lines say what was added in this run,
with patterns and norms as they were, not what would happen without a part: other parts may then do its work. Lines that take away
from what others add are counted by their size, so a share can be large where much cancels. If the check keeps much less than the
share, the boxes left out matter together though each adds little."""


def code(subject: Subject, chosen: CircuitChoice) -> str:
    """The lines of Python that compute the same graph and its check."""
    against = "" if chosen.against is None else f", against={chosen.against}"
    mean = "" if chosen.beyond_mean else ", beyond_mean=False"
    options = f"{against}, share={chosen.share:g}{mean}, most={chosen.boxes}"
    return f"""{opening(subject.lm)}
found = lm.circuit({subject.prompt!r}, {chosen.token}, {chosen.position}{options})
numbers = [(edge.source.name, edge.target.name, edge.kind, edge.value) for edge in found.edges]
checked = lm.check_circuit(found)
checked.kept, checked.whole, checked.without"""
