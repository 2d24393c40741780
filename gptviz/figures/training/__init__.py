"""Figures of how models learned."""
