"""The Classify page."""
