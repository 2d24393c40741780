"""The details folded below each view of the Translate page: how it comes about, and what it does not say."""

HOW_ATTENTION = r"""
$\text{pattern} = \text{softmax}\big(q\,k^\top / \sqrt{d_\text{head}}\big)$; each row sums to 1. In **cross-attention** the
queries come from the decoder, keys and values from the encoder's output, which is computed once per source. A row is called
by the token that is written there; its query comes from the token before it, the last that the decoder has read. The numbers
are what the taps `blocks.*.cross_attention.pattern`, `.q`, `.k` and `.v` saw in one forward pass (`read` in
`gptviz/interp/attention.py`; the equation in `gptviz/model/attention.py`). A mean is taken over the heads of a block. “Spread
over n tokens” is $e$ to the mean entropy of the rows. The two stacks read themselves too: see the Attention page."""
LIMITS_ATTENTION = """A line says where a head reads, not what it takes from there, nor whether that decides what is written.
A place of the encoder's output no longer holds its token alone, but what the encoder gathered there from the whole source. A
mean hides which head reads where: what one head reads alone and all others leave out is pale in it, and a pale spread in it
may be many sharp heads that read different places."""
HOW_NEXT = r"""
At each place the decoder gives every token a logit $z_i$; softmax makes it $p_i = e^{z_i} / \sum_j e^{z_j}$. All places are
computed in one forward pass from the output as it stands: the guess at a place depends on the source and on the tokens before it
alone, right or wrong (in training this is called *teacher forcing*). Entropy is $H = -\sum_i p_i \ln p_i$; perplexity is
$e^H$ (`gptviz.interp.cross_attention.read`, `gptviz.interp.next_token.predict`)."""
LIMITS_NEXT = """The model's own output takes the likeliest token at each place unless it is drawn; the likeliest whole output may
be another one (see Beam search). A probability says what the model expects, not whether it is right."""
HOW_BEAMS = r"""
An output's log-probability is the sum over its tokens, $\sum_t \ln p(y_t \mid y_{<t}, \text{source})$. At each step all
outputs in the beam are continued by their likeliest tokens and the best by that sum are kept; the rest is cut for good. One
that writes ⟨end⟩ leaves the beam. Answers are compared by sum ÷ length^penalty: 0 favours short ones, 1 compares the mean per
token. A width of 1 is greedy decoding (`beam_search` in `gptviz/generate/decoding.py`)."""
LIMITS_BEAMS = """The beam finds the best of what it kept: an output that begins badly and ends well may have been cut. Of
what is cut, as many continuations of each output are listed as could have been kept; all others are less likely still. The
likeliest output need not be the right one."""
