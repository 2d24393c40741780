"""The details folded below each view of the Translate page: how it is computed, and what it does not say."""

HOW_ATTENTION = r"""
$\text{pattern} = \text{softmax}\big(q\,k^\top / \sqrt{d_\text{head}}\big)$; each row sums to 1. In **cross-attention** the
queries come from the decoder, keys and values from the encoder's output, which is computed once per source. A row is named after
the token that is written there; its query comes from the token before it, the last one that the decoder has read. The numbers
were recorded by the taps `blocks.*.cross_attention.pattern`, `.q`, `.k` and `.v` in one forward pass (`read` in
`gptviz/interp/reading/attention.py`; the equation in `gptviz/model/parts/attention.py`). A mean is taken over the heads of a
block. “Spread
over n tokens” is $e$ to the power of the mean entropy of the rows. The two stacks read themselves too: see the Attention
page."""
LIMITS_ATTENTION = """A line says where a head reads, not what it takes from there, nor whether that decides what is written. A
place in the encoder's output holds not only its own token, but also what the encoder gathered there from the whole source. A
mean hides which head reads where: what only one head reads is pale in the mean, and a pale, wide spread may come from many heads
that each read a different place."""
HOW_NEXT = r"""
At each place the decoder gives every token a logit $z_i$; softmax makes it $p_i = e^{z_i} / \sum_j e^{z_j}$. All places are
computed in one forward pass from the output on screen: the guess at a place depends only on the source and on the tokens before
it, whether these are right or wrong (in training this is called *teacher forcing*). Entropy is $H = -\sum_i p_i \ln p_i$;
perplexity is $e^H$ (`gptviz.interp.reading.cross_attention.read`, `gptviz.interp.reading.next_token.predict`)."""
LIMITS_NEXT = """Unless the model's own output is drawn, it has the likeliest token at each place; even so, another output may be
likelier as a whole (see Beam search). A probability says what the model expects, not whether it is right."""
HOW_BEAMS = r"""
An output's log-probability is the sum over its tokens, $\sum_t \ln p(y_t \mid y_{<t}, \text{source})$. At each step every output
in the beam (the outputs kept so far) is continued by its likeliest tokens, and those with the highest sums are kept; the others
are cut and never come back. An output that writes ⟨end⟩ leaves the beam. Answers are compared by sum ÷ length^penalty: 0 favours
short ones, 1 compares the mean per token. A width of 1 is greedy decoding (`beam_search` in `gptviz/generate/decoding.py`)."""
LIMITS_BEAMS = """The search finds the best of the outputs that it kept: an output that begins badly and ends well may have been
cut. Among the cut continuations of an output, only as many are listed as could have been kept; all others are even less likely.
The likeliest output need not be the right one."""
