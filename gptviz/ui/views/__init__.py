"""Views that several pages use."""
