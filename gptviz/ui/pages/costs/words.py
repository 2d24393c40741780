"""How the page Size and cost counts, and what its numbers cannot tell."""

from __future__ import annotations

from gptviz.ui.shell.subject import Subject, opening

from .counts import CostSetting, context_lengths

HOW = r"""
**Parameters** are the numbers of every tensor; a tensor that two parts share is counted once.

**Operations.** A matrix of *in* × *out* numbers, applied to one token, takes $2 \cdot in \cdot out$ operations: one
multiplication and one addition for each number of the matrix. For $B$ texts of $T$ tokens:

- queries, keys and values: $2\,B\,T \cdot d_{model}\,(n_{head} + 2\,n_{kv})\,d_{head}$
- the scores, and again what is read: $2\,B\,T^2\, n_{head}\, d_{head}$
- each matrix of the MLP: $2\,B\,T \cdot d_{model}\, d_{mlp}$

The backward pass takes two products for each of these, one for the gradient of either factor: a step of training takes three
times what reading takes. This is what torch's own `FlopCounterMode` counts, to the last digit. A causal mask saves nothing
here: the scores it hides are computed and thrown away.

**Memory** of training: 4 bytes for each weight and each gradient, as many again for what the optimiser keeps (two numbers a
weight for Adam and AdamW), and the *activations*: everything the forward pass computed that the backward pass needs. Which
tensors these are is not written down by hand: autograd is asked, for a few small batches, what it saves; since that is a sum of
products of $B$, $T$ and $T^2$, these decide the formula for all batches and lengths. **Keys and values**:
$2 \cdot n_{layer} \cdot B \cdot T \cdot n_{kv} \cdot d_{head}$ numbers of 4 bytes.

**Time** is operations, bytes written and the number of operations on tensors, each divided by a speed of this machine that was
measured on three small models.

Counted by `gptviz/model/costs/operations.py` and `gptviz/model/costs/activations.py`, gathered by
`gptviz/interp/reading/costs.py`; time, memory at its highest and disk by `gptviz/train/estimate.py`.
"""
LIMITS = (
    "How good a model becomes, or how many steps that takes. Operations other than matrix products (norms, softmax, activation "
    "functions) are not counted: they are few, but on small models they take most of the time. Activations are in float32; in "
    "bfloat16 some of them take half. What is held for a moment and freed again, such as the gradient of an activation, is in "
    "the memory of the planner and not in the areas above."
)
HOW_FEWER = r"""
**Rounded to nearest.** Of the numbers $w$ that share a scale, with $b$ bits each, the scale is
$s = \max |w| / (2^{b-1} - 1)$, kept as a bfloat16, and each number becomes $\hat w = s \cdot \mathrm{round}(w / s)$: zero stays
zero, and none moves by more than $s / 2$. So a single number far from 0, an *outlier*, makes the steps of all its neighbours
large; the smaller the groups, the fewer neighbours it has.

**Kinds of GGUF** (Q8_0, Q4_0, …) are computed by the `gguf` library. Rows that are no multiple of 32 wide stay in float16.

**What is quantised**: all matrices that a token is multiplied with, and the embedding. Norms, biases and tables of positions
stay whole. **The error** of a matrix is $\lVert \hat W - W \rVert / \lVert W \rVert$, where a length is the root of the sum of
all squares. **Weight**: the bits of all numbers, and 2 bytes for every scale; what stays whole counts 4 bytes a number.

**How far a guess moves**: $\sum_t p_t \ln (p_t / q_t)$ over all tokens $t$, where $p$ is the guess of the whole model and $q$
that with fewer bits. Computed by `gptviz/model/quantising.py` and `gptviz/interp/changing/fewer_bits.py`.
"""
LIMITS_FEWER = (
    "It is simulated: the rounded numbers are brought back to float32 and multiplied as such, so this process needs no less "
    "memory and is not faster. Programs that really keep few bits often round what is multiplied with them too. Better ways to "
    "round look at a text while they do it (GPTQ, AWQ), or give some matrices more bits (the K kinds of GGUF): here every matrix "
    "is rounded by itself. A small error of one matrix can matter more than a large one of another: try one at a time."
)


def code(subject: Subject, chosen: CostSetting) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    config = subject.lm.model.config
    return f"""{opening(subject.lm, "from gptviz.interp.reading.costs import by_tensor, memory_over, operations_over")}
costs = lm.costs(batch={chosen.batch}, context={chosen.tokens})
costs.parameters, costs.forward, costs.training  # counts
costs.weights, costs.gradients, costs.activations, costs.optimiser, costs.cache  # bytes
costs.products  # every matrix product with its formula
lengths = {context_lengths(config)}
tensors = by_tensor(lm.model.config)  # [tensor]
operations = operations_over(lm.model.config, {chosen.batch}, lengths, {chosen.of!r})  # [part, tokens]
memory = memory_over(lm.model.config, {chosen.batch}, lengths, {chosen.optimiser!r})  # [what, tokens]"""
