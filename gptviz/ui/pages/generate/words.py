"""How the page Generate computes what it shows, and the limits of that, in words."""

from __future__ import annotations

from gptviz.figures.kit.format import counted
from gptviz.model import KVCache

from .writing import Writing

HOW = r"""The model reads the text so far and gives every token of its vocabulary a *logit* $z_i$, a score. The next token has
the probability

$$p_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

where $T$ is the temperature, and top-k and top-p decide which tokens are kept (`gptviz.generate.sampling.ledger`). Unused
tokens, which stand for no text (rows of the embedding beyond the tokens of the tokenizer), are never kept. The drawn token is
added to the text, and the model reads on (`gptviz.generate.generation.Generation`). Once the text is longer than the context,
the model sees the last tokens only, and reads all of them again at every step.

Everything drawn or taken stays in a tree (`gptviz.generate.tree.Tree`). A branch’s sum is $\sum_t \ln p(x_t \mid x_{<t})$ over
its tokens after the prompt, in nats: the logarithm of the probability that the model gives this text, at temperature 1 and with
nothing cut. To compare branches of different lengths, use the mean per token. Going back to a branch gives the same tokens and
the same logits, to the bit. What a step attended to is the last row of each head’s attention pattern in the pass that gave its
probabilities; no second pass is made for the picture.

A token’s colour shows its probability at temperature 1 over all tokens, whatever the settings: how sure the *model* was. A new
setting applies from the next token on. The random number of a place depends only on the seed and the place: if you undo a step,
the next step draws the same token again. So, to write the same text again, the address needs only the settings, how many tokens
they drew, and which tokens were chosen by hand (`gptviz.generate.route.Route`).

“Draft with” is speculative decoding (Leviathan et al. 2023; Chen et al. 2023; `gptviz.generate.speculation.Speculation`). The
drafter draws a token $x$ from its distribution $q$, and this model, with the distribution $p$, accepts it with probability
$\min(1, p(x) / q(x))$; both are taken after temperature, top-k and top-p. In place of a refused token one is drawn from
$\max(0, p - q)$, divided by its sum. So every token is distributed as $p$, whatever the drafter is, and a pass gives at least
one token. The mean share accepted is $\sum_x \min(p(x), q(x))$. The text’s own continuation gives the token that it copies the
probability $q = 1$ (prompt lookup decoding)."""
LIMITS = """A high probability says that the model expected the token, not that the token is right. A high sum is no sign of a
good text either: a text that repeats itself can have a high sum. Attention says where a step looked, not what it made of it, and
the mean of all heads hides what one of them does. Fewer passes of the large model are not yet less time: the drafter needs time
too, and past the context a pass reads as many windows as it judges tokens."""


def memory(writing: Writing) -> str:
    """The memory of the cache of keys and values at the present length of the text, counted in its tensors, as Markdown."""
    with writing.lock:
        writing.logits()
        cache = writing.tree.generation.cache
        if cache is None:
            return (
                "**Memory of keys and values.** Nothing is kept: this model looks ahead, so every new token changes the keys of "
                "all tokens before it, and each step computes the whole text."
            )
        return _counted(writing, cache)


def _counted(writing: Writing, cache: KVCache) -> str:
    config, by_block = writing.lm.model.config, cache.bytes_by_block
    if not by_block:
        return "**Memory of keys and values.** Nothing is kept: this model has no attention."
    each = cache.layers[0].keys.element_size()
    blocks = counted(config.n_layer, "block")
    heads = counted(config.key_heads, "head" if config.key_heads == config.n_head else "key head")
    held = counted(cache.length, "token")
    return f"""**Memory of keys and values.** Within the context, a step computes only the new token, because the keys and values
of the tokens already read are kept (the KV cache). The cache now holds {held}:

2 (a key and a value) · {blocks} · {heads} · {config.head_size} numbers a head · {held} ·
{each} bytes a number = **{sum(by_block):,} bytes**, of which {by_block[0]:,} in each block.

It has room for {config.context_length:,} tokens, the context."""
