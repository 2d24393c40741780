"""Controls whose values live in the address, and the details folded below a figure."""
