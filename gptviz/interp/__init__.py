"""Analyses that are computed from a trace and from weights."""
