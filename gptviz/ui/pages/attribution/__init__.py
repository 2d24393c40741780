"""The Attribution page."""
