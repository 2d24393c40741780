"""The formats in which other programs keep a model: folders, GGUF files, checkpoints of nanoGPT, any file of tensors with a
mapping.
"""
