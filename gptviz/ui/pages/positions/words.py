"""How the page Positions is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.interp.reading import positions
from gptviz.language_model import LanguageModel
from gptviz.ui.shell.subject import load_call
from gptviz.ui.views.encoder_decoder import DECODER, stack_of

HOW = r"""
The cosine of two vectors, $a \cdot b / (|a|\,|b|)$, for the vectors of any two positions:

- **learned**: the rows of the trained table.
- **sinusoidal**: $\sin(p / 10000^{2i/d})$ and $\cos(p / 10000^{2i/d})$, $d$ the width of the stream (Vaswani et al. 2017).
- **rotary**: each pair of a query's or key's numbers is turned by $p / 10000^{2i/d}$, $d$ the width of a head (Su et al. 2021);
  in some models by another base, on a part of the pairs only, or slowed down: the caption has the formula of this model.
  The vector turned here has $(1, 0)$ for every pair, so the map is $\frac{2}{d} \sum_i \cos((p - q) / 10000^{2i/d})$: the same
  sum as for sinusoidal positions, with fewer terms.
- **relative**: the rows of the trained table of distances (Shaw et al. 2018), all heads of a block joined.

**ALiBi** has no vectors: $-m_h\,|p - q|$ is added to the scores of head $h$ (Press et al. 2021).

Computed by `vectors`, `similarity` and `score_bias` in `gptviz/interp/reading/positions.py`, from the parts in
`gptviz/model/parts/positions.py`.
"""
LIMITS = (
    "Positions that look alike on the map may be very different to a head: its queries and keys learned how much each dimension "
    "(for rotary positions, each pair) counts, and may use a difference that hardly shows here. The page Attention shows what "
    "heads look at."
)


def code(lm: LanguageModel, kind: str, block: int, stack: str = DECODER) -> str:
    """The lines of `gptviz` that compute what the map of `kind` shows."""
    model = "lm.model" if stack_of(lm.model, stack) is lm.model else "lm.model.encoder"
    opened = f"import gptviz\nfrom gptviz.interp.reading import positions\n\nlm = {load_call(lm)}\n"
    if not positions.has_vectors(kind):
        return f"{opened}positions.score_bias({model}, {kind!r}, block={block}).values  # [head, distance]"
    return (
        f"{opened}vectors = positions.vectors({model}, {kind!r}, block={block})  # [position, dimension]\n"
        "positions.similarity(vectors).values  # [position, other position]"
    )
