"""The changes if a piece of a model is switched off, replaced, or patched from another run."""
