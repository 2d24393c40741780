"""The page Switch off."""
