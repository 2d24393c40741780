"""What can be computed from a trace and from weights."""
