"""Figures of what explains a guess: see `gptviz.interp.explaining`."""
