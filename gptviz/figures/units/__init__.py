"""Figures of single units: see `gptviz.interp.units`."""
