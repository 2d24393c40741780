"""The details folded on the page "Open a model"."""

from __future__ import annotations

from gptviz.pretrained.families import FAMILIES

READ_ONLY = "This server shows the models in its list, and opens no others: it is set to read-only."
HOW = f"""
A model of another program is laid out with the same parts as those that are trained here. A family is known by what its
`config.json` or the head of its GGUF file says; there are {", ".join(sorted({family.title for family in FAMILIES.values()}))}.
What can be folded into the weights (another order of rows, a gain stored as its distance from 1) is folded when they are read,
and every tensor must find its place: one that is missing, left over or of another shape is an error.

The weights stay where they are. Your own folder gets the config, the tokenizer, a card, and a file that says where the weights
are.
This page reads only the heads of files; the memory needed is that of the weights and of a text of about 1,000 tokens, and what is
free is asked of the system. In `gptviz/pretrained/places/`, `stores.py` knows where other programs keep models, and `hub.py`
fetches from the hub; `gptviz/runs/imports.py` writes what is kept.
"""
LIMITS = (
    "Whether the tokenizer and all weights are sound shows only when a model is opened: the lists read the heads of files alone. "
    "Rounded (quantised) weights are brought back to ordinary numbers, but what the rounding lost stays lost. And a licence is "
    "quoted as the files or the hub name it."
)
CODE = """import gptviz

lm = gptviz.load("shakespeare")  # the name of a model that is open already
# lm = gptviz.load("HuggingFaceTB/SmolLM2-135M")  # a name on the hub: from the cache, or fetched
# lm = gptviz.load(pathlib.Path("SmolLM2-135M.Q8_0.gguf"))  # a file or folder, where it is; needs import pathlib
print(lm.generate("Where is ", max_new_tokens=20))"""
