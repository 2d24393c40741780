"""From a trained model to text: sampling, generation, the tree of all branches, greedy decoding and beam search."""
