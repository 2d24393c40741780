"""The behaviour of single units: the heads and the neurons of a model, and how they are named."""
