"""Where a logarithmic axis has its ticks: at round numbers, and at several of them however short the axis is."""

from __future__ import annotations

import math

# From this many powers of ten on, an axis is marked at them alone; beyond the second number some are left out.
FEW_POWERS, MANY_POWERS = 2.0, 6.0
# A shorter axis has ticks at 1, 2 and 5 times a power of ten; one with fewer of them than this at equal distances.
FEWEST = 3


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, 0 < `low` < `high`: at least two, and at most eight."""
    powers = math.log10(high / low)
    step = max(1, math.ceil(powers / MANY_POWERS))
    digits = (1,) if powers >= FEW_POWERS else (1, 2, 5)
    first = math.floor(math.log10(low))
    every = (digit * 10.0**power for power in range(first, math.ceil(math.log10(high)) + 1, step) for digit in digits)
    ticks = [tick for tick in every if low <= tick <= high]
    return ticks if powers >= FEW_POWERS or len(ticks) >= FEWEST else _even(low, high)


def _even(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= next(times for times in (5, 2, 1) if (high - low) / (times * step) >= 3 or times == 1)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
