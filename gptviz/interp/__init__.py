"""Analyses that are computed from a trace and from weights.

Everywhere `model` is in evaluation mode, `ids` are the tokens that it reads (in an encoder–decoder,
those that its decoder reads), and `source` are those that the encoder of an encoder–decoder reads.
"""
