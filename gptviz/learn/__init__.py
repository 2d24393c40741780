"""Sampling and generation, checkpoints, training."""
