"""The names of the views of the Classify page, as the control `view` and the link have them."""

WORDS, ATTENTION, HELD_OUT, OWN = "Words", "Attention", "Held-out texts", "A file of yours"
VIEWS = (WORDS, ATTENTION, HELD_OUT, OWN)
