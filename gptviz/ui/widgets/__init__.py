"""Controls whose values live in the address, and what is folded behind a figure."""
