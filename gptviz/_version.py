"""The version, in a file that imports nothing, so that any part can use it."""

__version__ = "1.0.0"
