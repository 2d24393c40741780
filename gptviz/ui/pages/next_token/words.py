"""How the page Next token is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.ui.shell.subject import ModelKey, language_model, load_call

HOW = r"""The model gives every token of its vocabulary a *logit* $z_i$. Before and after sampling:

$$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}} \qquad p'_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

The logits are divided by the temperature $T$; top-k keeps the $k$ likeliest tokens; of these, top-p keeps the fewest whose
probabilities together reach $p$; what is kept is scaled up to sum to 1. At $T = 0$ only the likeliest token is left. If two
tokens are equally likely, the one with the smaller number counts as likelier. Unused tokens stand for no text: they are rows of
the embedding beyond the tokens of the tokenizer. The model gives them probabilities, but they are taken out before the
temperature and never drawn; they come last.

The draw puts the kept tokens side by side, in the vocabulary's order, on the line from 0 to 1, each as wide as its probability,
and takes the token on which a random number falls. That number is computed from the seed and from how many tokens come before:
so one seed always gives the same text. “Draw 10,000” draws with 10,000 new random numbers; the test value is
$\chi^2 = \sum (\text{seen} - \text{expected})^2 / \text{expected}$, where tokens that are expected fewer than 5 times are
counted together.

Everything is computed over the whole vocabulary, in float64: `gptviz.generate.sampling.ledger` and `draw`. The model runs once
per text; your browser works on the logits it gave. Entropy is $H = -\sum_i p_i \ln p_i$ in nats (divide by $\ln 2$ for bits);
perplexity is $e^H$. The chips above show the probability of each token given those before it:
`gptviz.interp.reading.next_token`."""
LIMITS = """A probability says what the model expects, not why, and not whether it is right. Rank and probability of one token
say little about the model as a whole: its loss is the average over many."""


def code(key: ModelKey, prompt: str, position: int, tokens_before: int) -> tuple[str, str]:
    """The lines of Python that compute the same stages and the same draw, before and after the settings."""
    lm = language_model(key)
    never = ", lm.tokenizer.unused_ids" if lm.tokenizer.unused_ids else ""
    begin = f"""import torch

import gptviz
from gptviz.interp.reading.next_token import logits_after
from gptviz.generate.sampling import Sampling, draw, ledger, uniform

lm = {load_call(lm)}
ids = lm.seen(lm.encode({prompt!r})).tolist()
logits = torch.from_numpy(logits_after(lm.model, ids, slice({position}, {position + 1})))  # [1, vocab_size]
sampling = """
    end = f"""
stages = ledger(logits, sampling{never})
stages.before, stages.scaled, stages.in_top_k, stages.in_top_p, stages.after  # [1, vocab_size] each
# The random number depends only on the place and the seed.
token = draw(stages.after, uniform(sampling.seed, {tokens_before}))  # [1]"""
    return begin, end


GUESSING_HOW = r"""**The text.** Its number and your guesses are in the address. The texts are twelve short scenes in the manner
of Shakespeare's plays, written for this game (`gptviz.text.datasets.unseen`): no model was trained on them, and nobody knows
them by heart. The last ten characters are to be guessed. A model reads as many before each of them as its context holds, and no
more than you at the first.

**The game** is Shannon's (C. E. Shannon, “Prediction and Entropy of Printed English”, 1951). Who knows in which order a player
guesses can find each token from the number of guesses alone. So a list of these numbers says as much as the text does.

**The bits.** Shannon counted how often each number of guesses occurred. Ten tokens are too few for that: here only the mean $m$
counts. The bits are the largest entropy that numbers from 1 to $V = 65$ with this mean can have,

$$H(m) = \log_2 \sum_{r=1}^{V} q^{r-1} - (m - 1) \log_2 q,$$

where $q$ is the number between 0 and 1 for which the distribution $p_r \propto q^{r-1}$ has the mean $m$. If $m$ is
$(V + 1) / 2 = 33$ or more, as with random guesses, it is $\log_2 V$. A token that you give up after $w$ wrong guesses counts as
$(V + w + 1) / 2$ guesses, as if the other characters were tried in a random order. The function is
`gptviz.interp.reading.guessing.bits_of_guesses`."""
GUESSING_LIMITS = """Ten tokens are few. Over the twelve texts, the bits by guesses of one model have a standard deviation of
about a third of a bit. So play several texts before you call somebody better. The number of guesses does not say how sure a
player was: a model that is sure and right needs as many guesses as one that is barely right, so for the best models the bits by
guesses are above those by probabilities. And the scenes only imitate the plays."""


def guessing_code(key: ModelKey, number: int) -> str:
    """The lines of Python that play the game."""
    return f"""import gptviz
from gptviz.interp.reading.guessing import play
from gptviz.interp.reading.next_token import probabilities
from gptviz.text.datasets.unseen import passage

lm = {load_call(language_model(key))}
before, guessed = passage({number})
game = play(lm.model, lm.encode(before + guessed).tolist(), len(before))
probabilities(game.logits)  # [T, vocab_size]
game.guesses, game.surprise  # [T], of each token
game.bits  # per token, by guesses"""
