"""Sources of batches to train on and to validate with."""
