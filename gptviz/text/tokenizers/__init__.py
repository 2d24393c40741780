"""Text to tokens and back, one file per kind of tokenizer."""
