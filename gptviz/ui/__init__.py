"""What the pages share: frame, controls, cached loaders."""
