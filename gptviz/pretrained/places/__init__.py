"""Where models of other programs are found: on the Hugging Face hub, and in the stores of this machine."""
