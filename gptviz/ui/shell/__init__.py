"""The frame of every page: the menu, the choice of model and prompt, the cached models, the
scrubber (the slider through training).
"""
