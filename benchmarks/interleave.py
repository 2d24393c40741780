"""Timing side by side: machines are noisy, so rivals take turns within one run and only ratios are
reported.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def interleave(
    rivals: dict[str, Callable[[], object]],
    rounds: int = 7,
    *,
    clock: Callable[[], float] = time.perf_counter,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """The median seconds of each rival over `rounds` turns, or what `of` makes of them, after one
    turn to warm up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(rounds + 1):
        for name, run in rivals.items():
            begun = clock()
            run()
            if turn:
                seconds[name].append(clock() - begun)
    return {name: of(times) for name, times in seconds.items()}


def report(
    title: str, seconds: dict[str, float], ours: str, work: float = 1.0, unit: str = "s"
) -> None:
    """Print each rival's time or rate (`work` per second) and how many times as long as `ours` it
    takes.
    """
    print(title)
    for name, value in seconds.items():
        shown = f"{work / value:,.0f} {unit}" if unit != "s" else f"{value * 1e3:,.1f} ms"
        print(f"  {name:<58} {shown:>16}   {value / seconds[ours]:6.2f} ×")
