"""How the numbers of the Neurons page are computed, what they cannot tell, and the code that computes them."""

from __future__ import annotations

from gptviz.ui.shell.subject import Subject, language_model, opening
from gptviz.ui.views.texts import in_code

from .choices import HELD_OUT, MOST_WRITTEN, WRITTEN, NeuronSetting, forgotten

HOW = r"""
A neuron is a number in the middle of an MLP, after the activation; in a gated MLP after the gate. Its values were recorded by
the tap `blocks.*.mlp.neurons` while the text was read in pieces of at most 256 tokens; of all neurons of the block only the
extremes, the sums and a histogram are kept. **Effect** is the mean of |activation| times the length of the neuron's column of
$W_\text{down}$. **What it speaks for** is that column, as the unembedding reads it: $W_U\, \gamma \odot w$, with the gain
$\gamma$ of the final norm, for layernorm also without the mean, less what all tokens have in common, which a softmax does not
see. A norm also divides by the size of the stream: this is another factor at every token, but the same for all tokens of the
vocabulary. Computed by `observe`, `promoted` and `steered` in `gptviz/interp/units/neurons.py`."""
LIMITS = """The contexts with the highest activations show what a neuron is most for, not all it is for: many neurons take part
in several unrelated things, and the middle of the histogram may look quite different. What it speaks for is the straight way to
the end: later blocks read what a neuron writes too. A neuron set far beyond its usual values brings the model where no text
ever brought it."""


def code(subject: Subject, setting: NeuronSetting, neuron: int, value: float) -> str:
    """The lines of `gptviz` that compute what is shown."""
    lm = language_model(setting.key)
    text, most = in_code(setting.text), setting.most
    if setting.kind == HELD_OUT:
        text = "None"
    elif setting.kind == WRITTEN:
        text = f"lm.generate({setting.text!r}, {MOST_WRITTEN}, go_on=True, slide={forgotten(lm)}, seed=0)"
        most = MOST_WRITTEN
    promotes = (
        ""
        if lm.model.config.kind == "classifier"
        else f"\ntokens = promoted(lm.model, {setting.block}, {neuron})  # [vocab_size]"
    )
    return f"""import torch

{opening(lm, "from gptviz.interp.units.neurons import promoted, steered")}
seen = lm.neurons({setting.block}, {text}, {most})
seen.table()  # [neuron, number]
counts = seen.histogram({neuron}){promotes}
ids = torch.tensor({list(subject.seen)})
before, after = (steered(lm.model, ids, {setting.block}, {neuron}, value).softmax(-1) for value in (None, {value!r}))"""
