"""The layers of a model that are made of units, each of which has a number at every token: neurons,
heads, and the features of a dictionary.
"""

from __future__ import annotations

from gptviz.model import Transformer

from ..dictionaries.dictionary import dictionary_for
from ..dictionaries.features import observable_features
from .activity import Observable
from .head_activity import HeadSide, observable_heads
from .neurons import observable_neurons
from .unit import unit

OF_DICTIONARY = "dictionary."


def observable_layer(model: Transformer, layer: str, side: HeadSide = "query") -> Observable:
    """The units of a layer: of an MLP or an attention, such as `blocks.1.mlp`, or of a dictionary,
    `dictionary.NAME`. A ValueError if it is not made of units, or does not fit the model.
    """
    config = model.config
    if layer.startswith(OF_DICTIONARY):
        dictionary = dictionary_for(layer.removeprefix(OF_DICTIONARY), config)
        return observable_features(model, dictionary)
    of = unit(layer, config)
    if of.block is None or of.index is not None:
        raise ValueError(
            f"{layer} is not made of units: give an MLP or an attention, such as blocks.0.mlp"
        )
    if of.is_mlp:
        return observable_neurons(model, of.block)
    return observable_heads(model, of.block, side)
