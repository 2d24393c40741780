"""How the page Residual stream is computed, what it cannot show, and its code."""

from __future__ import annotations

from gptviz.ui.records.stream import DIRECTIONS, LENGTHS, WRITTEN
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import projections
from gptviz.ui.views.read import Read, opening_code

from .computed import MOST_POSITIONS, MapChoice

HOW = (
    r"""
The stream $x_l$ is recorded after the embedding and after every sublayer, in the pass that makes the model's prediction (the taps
`resid_pre`, `resid_self`, `resid_mid` and `resid_post`; `interp/reading/layers.py`). A sublayer writes $\delta_l = x_{l+1} -
x_l$; where attention and MLP read the same stream, $\delta$ is what the tap `out` of each has.

- **What is written**: the size is $\lVert\delta_l\rVert / \lVert x_l\rVert$; along the stream is the projection
  $\delta_l \cdot x_l / \lVert x_l\rVert^2$. For all positions together it is the median (`shares`).
- **Lengths**: $\lVert x_l\rVert$, the root of the sum of squares (`lengths`).
- **Directions**: the cosine of $x_l$ and $x_m$ of the same position; for all positions together the mean (`cosines`).
- **Map**: the vectors of all positions after one layer. By PCA each layer is seen along the two directions in which its own
  vectors differ most; every picture is turned, mirrored and resized to match that of the layer before (orthogonal Procrustes),
  and all have the same axes (`maps`). t-SNE and UMAP start from that layer's own PCA, and are matched to it (`map_after`).
"""
    + projections.HOW_STABLE
    + "\nComputed by the functions named, in `gptviz/interp/reading/stream.py`."
)
LIMITS = """A long vector is not an important one: what reads it through a norm does not see its length. A sublayer that writes
little may decide the guess, if it writes in a direction that matters. A map in two dimensions cannot hold what many can, and as
it is turned and resized, up, left and far mean nothing."""


def code(subject: Subject, read: Read, view: str, index: int | None, chosen: MapChoice | None) -> str:
    """The lines of `gptviz` that compute the numbers of the picture."""
    last = "" if len(read.ids) <= MOST_POSITIONS else f", last={MOST_POSITIONS}"
    and_source = "" if read.source is None else ", source"
    opened = opening_code(
        subject, read, *(["import numpy as np"] if view == WRITTEN else []), "from gptviz.interp.reading import stream"
    )
    begin = f"""{opened}
seen = stream.stream(lm.model, ids{and_source}{last})
tokens = [lm.tokenizer.label(ids[i]) for i in seen.positions]
"""
    if view == WRITTEN:
        of = "np.median(shares, axis=2)" if index is None else f"shares[:, :, {index}]"
        return f"{begin}shares = stream.shares(seen, tokens).values  # [quantity, sublayer, position]\nshown = {of}"
    if view == LENGTHS:
        return f"{begin}shown = stream.lengths(seen, tokens).values  # [layer, position]"
    if view == DIRECTIONS or chosen is None:
        return f"{begin}shown = stream.cosines(seen, {index}).values  # [layer, layer]"
    begin += f"by_layer = stream.rows(seen, unit={chosen.unit})  # [position, d_model] each\n"
    begin += "pictures = stream.maps(by_layer, tokens)\n"
    if chosen.method == "PCA":
        return f"{begin}shown = pictures[{chosen.layer}].points.values  # [position, component]"
    at = f"by_layer[{chosen.layer}], tokens, {chosen.method!r}, {chosen.seed}, pictures[{chosen.layer}]"
    return f"{begin}shown = stream.map_after({at}).points.values  # [position, component]"
