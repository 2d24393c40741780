"""The details folded below the Attribution page: its code, how it is computed, and what it cannot tell."""

from __future__ import annotations

from gptviz.ui.shell.subject import opening

from .setting import AttributionSetting

HOW = r"""
The logit of a token is the product of what the head reads with the token’s row $u$ of the unembedding, plus a bias. What the head
reads is the final norm of the residual stream, and the stream is the sum of what all parts wrote into it. A norm divides by the
size of the whole vector; with that number held as it was in this run it is linear, so it can be applied to every part by itself:


$$
\text{logit} = \sum_\text{parts} u \cdot
\frac{\text{gain} \odot (x_\text{part} - \overline{x_\text{part}})}{\sqrt{\text{variance} + \epsilon}}
+ u \cdot b_\text{norm} + b_u
$$


(LayerNorm; RMSNorm takes no mean away and has no bias.) A head writes its slice of the output projection times
$z = \sum_s \text{pattern}_s v_s$; so its share is a sum over the tokens $s$ that it reads, too. Norms after a part of a block, as
in post-norm models, are frozen in the same way, one after the other.

Nothing is computed twice: the parts are those of the pass that gave the logit, in which the badge looks for the difference. The
error is that of the sum, divided by the largest part; it is green below 0.0001. The sum is taken in float64:
`gptviz.interp.explaining.attribution.attribute`, `gptviz.interp.explaining.decomposition.Stream`. Source: Elhage et al. 2021, “A
Mathematical Framework for Transformer Circuits”."""
LIMITS = """“Adds” means directly: what a head does by way of later parts, which read what it wrote, counts as theirs. So a head
without which the guess would fall apart may add nothing here. That a norm is frozen hides what a part does to the size of the
vector, and so to the shares of all others. The share of a bias or of an embedding may be large and the same for every text."""


def code(setting: AttributionSetting) -> str:
    """The lines of `gptviz` that compute the parts."""
    found, lm = setting.found(), setting.subject.lm
    position = "" if found.position is None else f", position={found.position}"
    against = "" if found.against is None else f", against={found.against}"
    minus = "" if found.against is None else f" minus that of {setting.name(found.against)!r}"
    return (
        f"{opening(lm)}\n"
        f"found = lm.attribute({setting.subject.prompt!r}, token={found.token}{position}{against})\n"
        f"found.labelled().values  # [part]: the logit of {setting.name(found.token)!r}{minus}\n"
        "found.sum, found.logit, found.error\n"
    )
