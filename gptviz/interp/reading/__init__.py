"""Values that a model computes: patterns, embeddings, positions, the stream, its guesses, and its
drawing as boxes.
"""
