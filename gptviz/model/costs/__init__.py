"""The costs of a model, as formulas: parameters, operations, and memory."""
