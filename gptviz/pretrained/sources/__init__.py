"""The formats in which other programs keep a model: folders, GGUF files, checkpoints of nanoGPT,
any tensors with a mapping.
"""
