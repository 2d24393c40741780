"""Other people's models: their configs, their weights and their tokenizers, opened with our own parts."""
