"""The page "Open a model"."""
