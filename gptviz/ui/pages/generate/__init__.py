"""What the page Generate draws: a text that grows token by token, and the tree of all its branches."""
