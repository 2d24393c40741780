"""Figures of what a model computes: see `gptviz.interp.reading`."""
