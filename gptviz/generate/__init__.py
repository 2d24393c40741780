"""From a trained model to text: sampling, generation, the tree of branches and its routes, greedy
decoding, beam search.
"""
