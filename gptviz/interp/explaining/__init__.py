"""Explanations of a guess: how much each part adds to it, the circuit of its parts, and the earlier
tokens that it needs.
"""
