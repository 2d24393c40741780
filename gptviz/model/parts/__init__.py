"""The parts that a transformer is built from: a file for each kind, a small class for each choice
of a config.
"""
