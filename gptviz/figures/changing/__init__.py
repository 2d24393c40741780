"""Figures of what a change does: see `gptviz.interp.changing`."""
