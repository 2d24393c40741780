"""Finding models of other programs: on the Hugging Face hub, and in the stores of this machine."""
