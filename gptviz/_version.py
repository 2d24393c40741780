"""The version, in a file that imports nothing, so that any part may name it."""

__version__ = "0.1.0"
