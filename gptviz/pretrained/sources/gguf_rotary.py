"""The rotary frequencies that a GGUF file lists: those of Llama 3.1, from which its rule is
computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..families import ImportRefusedError

# Wavelengths below the training's context length divided by this are not changed.
HIGH = 4.0
Floats = NDArray[np.float64]


def llama3_rule(divisors: Floats, base: float) -> dict[str, Any]:
    """The rotary settings, as config.json has them, that divide the frequencies of a head's pairs
    by these numbers [d_head / 2].

    The frequency of a long wavelength is divided by the factor, that of a short one by 1, and those
    between by numbers between, from which the context length of the training is computed. The
    result is checked against all divisors: an ImportRefusedError if they do not follow the rule of
    Llama 3.1.
    """
    wavelengths = 2 * math.pi * base ** (np.arange(len(divisors)) / len(divisors))
    if not len(divisors) or not np.isfinite(divisors).all() or divisors.min() < 1:
        raise _refuse_scaling()
    factor = round(float(divisors.max()), 6)
    if factor == 1:
        return {"rope_type": "default", "rope_theta": base}
    between = (divisors > 1 + 1e-4) & (divisors < factor - 1e-4)
    if between.any():
        share = (1 / divisors[between] - 1 / factor) / (1 - 1 / factor)
        context = round(float(np.median(wavelengths[between] * (1 + (HIGH - 1) * share))))
    else:
        if divisors.min() < factor - 1e-4:
            unchanged = wavelengths[divisors == divisors.min()].max()
        else:
            unchanged = 0.0
        context = math.ceil(HIGH * unchanged) + 1
    if context < 1 or not np.allclose(
        _divisors(wavelengths, factor, context), divisors, rtol=1e-5, atol=0
    ):
        raise _refuse_scaling()
    return {
        "rope_type": "llama3",
        "rope_theta": base,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": HIGH,
        "original_max_position_embeddings": context,
    }


def _divisors(wavelengths: Floats, factor: float, context: int) -> Floats:
    """The divisors of frequencies with these wavelengths."""
    share = ((context / wavelengths - 1) / (HIGH - 1)).clip(0, 1)
    divisors: Floats = 1 / ((1 - share) / factor + share)
    return divisors


def _refuse_scaling() -> ImportRefusedError:
    return ImportRefusedError(
        "its frequencies of rotary positions (rope_freqs.weight) do not follow the rule of Llama "
        "3.1, the only one gptviz has"
    )
