"""Over training: the numbers that pages show, followed through the snapshots of a model."""
