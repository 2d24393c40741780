"""What each setting of a recipe or an architecture does, in a sentence: the helps of the form and of the Runs page."""

from __future__ import annotations

from gptviz.train.recipe import HELP

HELPS = HELP | {
    "data": "What it learned from.",
    "vocab_size": "How many tokens it knows.",
    "context_length": "How many tokens it sees at a time.",
    "d_model": "How many numbers stand for a token between its blocks.",
    "n_layer": "How many blocks it has; none is a bigram.",
    "n_encoder_layer": "How many blocks read the source, before the others write the answer.",
    "n_head": "How many heads look at the text side by side in a block.",
    "d_head": "How many numbers a query, a key and a value have.",
    "d_mlp": "How many neurons a block's MLP has; 0 is no MLP.",
    "residual": "How what a sublayer computes joins the stream, and where it is normalised.",
    "norm": "How the numbers of a token are brought to one scale.",
    "positions": "How it knows the order of its tokens.",
    "mask": "Which tokens a token sees: earlier ones (causal), or all (full).",
    "activation": "What bends a neuron's input.",
    "tied": "Whether one matrix serves to read tokens and to guess them.",
    "qk_norm": "Whether queries and keys are brought to one length.",
    "head": "What its last state becomes: the next token (unembed), or a label, from a number of every token with a weight for "
    "its place (flatten) or from the mean of all tokens (mean).",
    "n_label": "How many labels it tells apart.",
    "padding": "The token that fills up the shorter texts of a batch, which nobody reads.",
    "dropout": "The share of numbers left out at random at each step of training.",
}
