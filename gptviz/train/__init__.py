"""Training: the recipe, the trainer, its optimisers, and what it costs."""
