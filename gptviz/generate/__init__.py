"""From a trained model to text: sampling, generation, the tree of branches and the routes in it, greedy decoding, beam search."""
