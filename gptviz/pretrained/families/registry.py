"""The families that can be opened, by their names in `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..given import ImportRefusedError
from .base import Family
from .bert import Bert, DistilBert
from .gpt2 import GPT2, OPT, Bloom, GPTNeo
from .llama import Gemma, Gemma2, Gemma3, Llama, Mistral, Olmo2, Qwen2, Qwen3
from .marian import Marian
from .mixtures import GraniteMoe, Mixtral, Olmoe, Qwen2Moe, Qwen3Moe
from .neox import GPTJ, GPTNeoX, Phi

FAMILIES: dict[str, Family] = {
    kind.model_type: kind()
    for kind in (
        *(
            GPT2,
            GPTNeo,
            GPTNeoX,
            OPT,
            Llama,
            Mistral,
            Qwen2,
            Qwen3,
            Gemma3,
            GPTJ,
            Phi,
            Gemma,
            Gemma2,
            Olmo2,
            Bloom,
        ),
        *(Mixtral, Qwen2Moe, Qwen3Moe, Olmoe, GraniteMoe),
        *(Bert, DistilBert, Marian),
    )
}


def family_of(fields: Mapping[str, Any]) -> Family:
    """The family of the model with this `config.json`; the families that can be opened are named if
    it is none of them.
    """
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ImportRefusedError(
            f"config.json: the model is of type {kind!r:.60}, which gptviz cannot open; it opens "
            f"{', '.join(FAMILIES)}"
        )
    return FAMILIES[kind]
