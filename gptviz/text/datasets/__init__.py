"""The texts, the labelled texts, the pairs and the generated tasks to train on."""
