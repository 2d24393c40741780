"""What other programs keep a model in: folders, GGUF files, checkpoints of nanoGPT, and any file of tensors with a mapping."""
