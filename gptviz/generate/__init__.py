"""From a trained model to text: sampling, generation, the tree of all branches and the routes in it, greedy decoding and beam search."""
