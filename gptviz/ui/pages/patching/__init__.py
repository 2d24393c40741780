"""What the page Patching shows."""
