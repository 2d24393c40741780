"""The names of the views of the Translate page, as the control `view` and the link have them."""

CROSS_ATTENTION, NEXT_TOKEN, BEAM_SEARCH = "Cross-attention", "Next token", "Beam search"
VIEWS = (CROSS_ATTENTION, NEXT_TOKEN, BEAM_SEARCH)
