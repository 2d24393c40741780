"""How the page Switch off computes what it shows, and what that cannot tell."""

HOW = r"""
A model with edits shares every weight with the model itself (`lm.edited(…)`; `gptviz/interp/changing/edits.py`): in its forward
pass, where a part offers a value by a tap, another value takes its place, and all that comes later reads that. **A head** that is
switched off hands zeros to the output projection (the tap `z`); that is the same as zeros in its columns of that matrix. **An
attention or an MLP** that is switched off adds nothing to the stream (the tap `out`), not even its bias. **A neuron** is a
number of the tap `neurons`, set to 0 or to a value. **Mean** is the mean of the same value over all tokens of the reference
text, computed by the model without edits. **A pattern** that is replaced weighs all tokens alike that the query may read
(uniform), is 1 on the token before (previous), or is the one that the same head has over the reference text, row by row from
position 0 on; rows beyond its end stay as they are. **Positions** are switched off at their source: vectors of zeros, queries
and keys that are not turned, no bias by distance; shuffled, every place of the context is told as another place, in an order
that is always the same.

The loss is the mean of $-\ln p$ over the tokens that really come (`gptviz/interp/changing/ablation.py`). The numbers in the grid
are
about the model without edits, each head and each MLP taken alone, so that they stay while you switch. Of a prompt, a classifier
has to predict the label that it gives the text without edits, and an encoder–decoder its own answer. The guess of an
encoder–decoder is that of the first token of its answer. $\text{divergence} = \sum_i p_i \ln (p_i / p'_i)$, with $p$ before and
$p'$ after (`gptviz/interp/changing/before_after.py`).
"""
LIMITS = """A model was never trained with parts missing. Zero may be a value that later parts have never met, so that the loss
rises by more than what the part has to say; the mean is milder. Where the loss hardly changes, another part may have done the
same work: switch off both. And a change of the loss on one text says little about others."""
