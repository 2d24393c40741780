"""Other people's models: their configs, their weights and their tokenizers, opened with our own
parts.

What cannot be opened is refused with an `ImportRefusedError`, whose message names the file or field
and says what can be done.
"""
