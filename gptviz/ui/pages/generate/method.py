"""How the page Generate computes what it shows, and the limits of that, in words."""

HOW = r"""The model reads the text so far and gives every token of its vocabulary a *logit* $z_i$, a score. The next has
probability

$$p_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

where $T$ is the temperature, and top-k and top-p decide which tokens are kept (`gptviz.generate.sampling.ledger`). The token
drawn is put after the text, and the model reads on (`gptviz.generate.generation.Generation`). Keys and values of the tokens
already read are kept, so that a step computes the new token alone, until the text is longer than the context: then the model
sees the last tokens only, and reads them all anew at every step.

Everything drawn or taken stays in a tree (`gptviz.generate.tree.Tree`). A branch’s sum is $\sum_t \ln p(x_t \mid x_{<t})$ over
its tokens after the prompt, in nats: the logarithm of the probability that the model gives this text, at temperature 1 and with
nothing cut. Branches of different lengths compare by the mean per token. Going back to a branch gives the same tokens and the
same logits, to the bit. What a step attended to is the last row of each head’s pattern in the pass that gave its probabilities;
there is no other pass for the picture.

A token’s colour shows its probability at temperature 1 over all tokens, whatever the settings: how sure the *model* was. A new
setting holds from the next token on. The random number of a place depends on the seed and the place alone: undo a step, and it is
drawn again."""
LIMITS = """A high probability says that the model expected the token, not that the token is right, and a high sum is no sign of
a good text: the loops of temperature 0 have high ones. Attention says where a step looked, not what it made of it, and the mean
of all heads hides what one of them does."""
