"""How the numbers of the Heads page are computed, what they cannot tell, and the code that computes them."""

from __future__ import annotations

from gptviz.interp.units.head_weights import HeadInput
from gptviz.ui.shell.subject import language_model, opening
from gptviz.ui.views import attention, encoder_decoder, held_out
from gptviz.ui.views.texts import in_code

from .choices import HeadSetting
from .computed import text

HOW = r"""
Each score is a mean over all queries but the first token, which has none before it; over random tokens, also over eight texts,
and over data held out, over all texts that are read of them.
The patterns are recorded by the tap `blocks.*.attention.pattern` in a forward pass of the model. **Copying** is $\sum_i
\lambda_i \,/\, \sum_i |\lambda_i|$ over the eigenvalues $\lambda_i$ of $W_U W_O W_V W_E$: what reading a token adds to the
logit of each token, if nothing else of the model acts in between. Its eigenvalues that are not 0 are those of the small matrix
$W_O W_U W_E W_V$, which has as many rows as a head has numbers (Elhage et al. 2021). Norms are replaced by what is linear in
them: the gain, and for layernorm taking the mean away. What all logits have in common is taken away, since a softmax does not
see it. **Loss without it** replaces what one head adds by zero and takes the loss again; over data held
out, the loss of what counts there: of a task only its answers. Computed by `head_scores` and
`losses_without` in `gptviz/interp/units/head_scores.py` and `copying` in `gptviz/interp/units/head_weights.py`."""
LIMITS = """A score says where a head looks, not what it does with what it finds, nor whether the model needs it: switch the
head off to see. A head that gets no score may do something that nobody has named. Over random tokens a model is far from what
it was trained on, so heads may behave otherwise than in a text. Copying only sees the direct way from an embedding through one
head to the logits; in later blocks a head reads much else, and what it writes is read by others."""
HOW_READS = r"""
$\lVert W_{QK} W_{OV} \rVert \,/\, (\lVert W_{QK} \rVert\, \lVert W_{OV} \rVert)$ for the key, with $W_{QK} = W_Q^\top W_K$ of
the head that reads and $W_{OV} = W_O W_V$ of the head that writes; $\lVert \cdot \rVert$ is the root of the sum of the squares.
For the query $W_{QK}$ is transposed, for the value it is the reader's own $W_{OV}$ (Elhage et al. 2021, “A Mathematical
Framework for Transformer Circuits”). If the writer is turned at random in the stream, the mean of the squares is exactly $1 /
d_\text{model}$; its root is what is called chance here, and is subtracted in the picture. Norms are replaced by what is linear
in them; biases, the rotation of rotary positions, and norms of queries and keys are left out. Computed in the few numbers of
each head by `composition` in `gptviz/interp/units/head_weights.py`."""
LIMITS_READS = """Weights alone do not say what stands in the stream when a text is read: a strong pair may never be used, and a
weak one may matter for a few tokens. What MLPs change on the way is not seen. Edits do not touch weights: what is switched off
is shown as if it were not."""


def code(setting: HeadSetting, prompt: str) -> str:
    """The lines of `gptviz` that compute the scores; heads that do not read random tokens read the `prompt`."""
    lm, read = language_model(setting.key), text(setting)
    copies = setting.stack == encoder_decoder.DECODER and lm.model.config.kind != "classifier"
    begin = f"""import torch

{opening(lm, "from gptviz.interp.units.head_scores import head_scores", "from gptviz.interp.units.head_weights import copying")}
"""
    model = "lm.model.encoder" if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER else "lm.model"
    end = ".including(copying=copying(lm.model))" if copies else ""
    if setting.held_out:
        return _code_of_held_out(setting, begin, end)
    if setting.read is None:
        return (
            f"{begin}scores = head_scores({model}, lm.repeated_tokens()){end}.table()  # [block, head, score]{_losses(setting)}"
        )
    ids, arguments = read.ids.tolist(), ""
    if read.source is not None:
        arguments += f", torch.tensor({read.source.tolist()})"
    if setting.stack == attention.CROSS:
        arguments += ", crosses=True"
    elif lm.model.encoder is None:
        arguments += ", repeats=lm.repeated_tokens()"
    scores = f"scores = head_scores({model}, ids{arguments}){end}.table()  # [block, head, score]"
    return f"{begin}ids = torch.tensor({ids})\n{scores}{_losses(setting, prompt)}"


def _code_of_held_out(setting: HeadSetting, begin: str, end: str) -> str:
    """The lines that score the heads over what was held out, and compute the loss without each of them."""
    return f"""{begin.replace("import head_scores", "import scores_over_texts")}texts = lm.rows(most={held_out.MOST_TOKENS})
scores = scores_over_texts(lm.model, texts, lm.repeated_tokens()){end}.table()  # [block, head, score]

from gptviz.interp.changing.ablation import Rows, loss, loss_with_each
from gptviz.interp.changing.edits import Inputs, UnitEdit
from gptviz.interp.units.unit import heads_and_mlps

{held_out.code_of_tested(setting.key)}
heads = [UnitEdit(one) for one in heads_and_mlps(lm.model.config) if one.is_head]
changes = {{one.unit.name: value - loss(lm.model, rows) for one, value in loss_with_each(lm.model, rows, heads)}}"""


def _losses(setting: HeadSetting, prompt: str | None = None) -> str:
    """The line that computes the loss without each head, of all stacks; nothing for a model that guesses no tokens."""
    if language_model(setting.key).model.config.kind == "classifier":
        return ""
    text = "" if prompt is None else f"{in_code(setting.text or prompt)}, "
    return f"\nrows = lm.heads({text}losses=True)  # with delta_loss, the loss without each head: a pass for each"


def code_reads(setting: HeadSetting, reads: HeadInput) -> str:
    """The lines of `gptviz` that compute the composition."""
    lm = language_model(setting.key)
    model = "lm.model.encoder" if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER else "lm.model"
    return f"""{opening(lm, "from gptviz.interp.units.head_weights import by_chance, composition")}
values = composition({model}, {reads!r})  # [head that reads, head that writes]
by_chance({model})  # what it is by chance"""
