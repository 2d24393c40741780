"""What every page stands in: menu, model, prompt, cached models, the scrubber."""
