"""How patching is computed, what it cannot tell, and the code that computes it."""

from __future__ import annotations

from gptviz.ui.shell.subject import Subject, opening

from .prompts import Prompts

HOW = r"""The model reads the clean prompt, and what it computes is kept. Then it reads the corrupted prompt, and *one* tensor, or
a piece of it, is replaced by that of the clean prompt; all that comes after is computed from the replacement. With the answer
$a = \text{logit}(\text{right}) - \text{logit}(\text{wrong})$ after the last token, a cell shows

$$\text{restored} = \frac{a_{\text{patched}} - a_{\text{corrupted}}}{a_{\text{clean}} - a_{\text{corrupted}}}$$

0 % is as without the patch, 100 % as after the clean prompt. Where $a_{\text{clean}} = a_{\text{corrupted}}$ there is nothing to
restore, and no share is defined. The residual stream at a position is everything that the model knows there; attention and MLP
are what is added to it. Of a head, *z* is what it hands on (its pattern times its values), *pattern* whom it looks at, and *q*,
*k*, *v* are its queries, keys and values, at all positions. `gptviz.interp.changing.patching.patch` computes many patches in one
pass, as rows of a batch.

Of a small model all patches are computed at once. Of a large one there is a **preview** first. It takes the answer to be a
straight line in every number $t$ of the model's tensors, so that a patch adds
$\sum \frac{\partial a}{\partial t}\,(t_{\text{clean}} - t_{\text{corrupted}})$ over the numbers it replaces. The slopes are
means over several passes, whose streams before block 0 go in equal steps from the corrupted prompt to the clean one (integrated
gradients); of patterns, queries and keys, which act on values that stay corrupted, those over the corrupted prompt alone.
Softmax, norms and activations are no straight lines, so it can be far off. Some patches of each heatmap, half of them those that
the preview finds largest, are therefore computed, and so is the correlation (Pearson) of the preview with them: a preview with a
low one is not drawn. Cells whose value is known are exact: those computed, those where both runs are the same, and the stream
before block 0 at the only position where the prompts differ.
`gptviz.interp.changing.attribution_patching.preview` computes all of it."""
LIMITS = """A patch that restores the answer carries what the prompts differ in, for these two prompts; another pair may use other
heads. What both prompts have in common does not show at all. Several patches together may restore more, or less, than the sum of
their shares: a head that has a stand-in restores little by itself. Values above 100 % and below −100 % have the colour of the end
of the scale; the number is where the pointer is."""


def code(subject: Subject, prompts: Prompts, what: str, *, exact: bool) -> str:
    """The lines of Python that compute the heatmap of a quantity."""
    pair = prompts.pair
    guess = "" if exact else ", exact=False"
    return f"""{opening(subject.lm)}
# The right and the wrong answer as tokens of the vocabulary: {prompts.names[0]!r} and {prompts.names[1]!r}.
patched = lm.patch(
    {subject.prompt!r},
    {prompts.text!r},
    right={pair.right},
    wrong={pair.wrong},
    what={what!r}{guess},
)
patched.restored.values  # [block, {"position" if what in ("resid_pre", "attention.out", "mlp.out") else "head"}]
patched.answers  # the same, as differences of logits"""
