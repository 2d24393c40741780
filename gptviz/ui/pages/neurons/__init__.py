"""What the Neurons page shows."""
