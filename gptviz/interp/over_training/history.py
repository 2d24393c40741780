"""The history of a measure: its values at all snapshots of a model, its sharpest change, and when
half of its change was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gptviz.labelled_array import Axis, Float64Array, LabelledArray

from .measures import Measure


@dataclass(frozen=True)
class SharpestChange:
    """A change of one series between two neighbouring snapshots."""

    series: int  #: which series, as its index
    row: int  #: the index of the earlier snapshot
    steps: tuple[int, int]  #: the steps of both
    values: tuple[float, float]  #: the values at both

    @property
    def words(self) -> str:
        """The change in words: "rises from 0.25 at step 203 to 0.63 at step 256"."""
        before, after = (
            f"{value:.3g} at step {step:,}".replace("-", "−")
            for value, step in zip(self.values, self.steps, strict=True)
        )
        return f"{'falls' if self.values[1] < self.values[0] else 'rises'} from {before} to {after}"


@dataclass(frozen=True)
class Halfway:
    """When the series that changed most had made half of its change from the first snapshot to the
    last.
    """

    series: int  #: which series, as its index
    #: where a straight line between the snapshots before and after reaches half; no whole number
    step: float
    steps: tuple[int, int]  #: the steps of these two snapshots


@dataclass(frozen=True)
class History:
    """The values of a measure through training."""

    measure: Measure  #: what was measured
    steps: tuple[int, ...]  #: the steps of the snapshots, in rising order
    series: tuple[str, ...]  #: the names of the series
    values: Float64Array  #: [step, series]; NaN where a value has no meaning

    @classmethod
    def from_values(cls, measure: Measure, values: Mapping[int, Mapping[str, float]]) -> History:
        """The history from the values by step; of one step at least."""
        steps = sorted(values)
        series = tuple(values[steps[0]])
        return cls(
            measure,
            tuple(steps),
            series,
            np.array([[values[step][name] for name in series] for step in steps]),
        )

    def labelled(self) -> LabelledArray:
        """The values as an array [step, series]."""
        return LabelledArray(
            self.values,
            (Axis("step", tuple(map(str, self.steps))), Axis("series", self.series)),
            self.measure.unit,
        )

    def sharpest(self, *, log_steps: bool = True) -> SharpestChange | None:
        """The largest change between neighbouring snapshots, divided by their distance on the axis
        of steps, a logarithmic one with no place for step 0 unless `log_steps` is off; None if
        nothing changes. A distance below the median counts as the median: two snapshots that lie
        close to each other make no cliff.
        """
        steps = np.array(self.steps, float)
        first = int(np.searchsorted(steps, 1)) if log_steps else 0
        places = np.log2(steps[first:]) if log_steps else steps
        if len(places) < 2:
            return None
        distances = np.diff(places)
        rates = (
            np.abs(np.diff(self.values[first:], axis=0))
            / np.maximum(distances, np.median(distances))[:, None]
        )
        rates = np.where(np.isfinite(rates), rates, 0.0)
        row, series = map(int, np.unravel_index(rates.argmax(), rates.shape))
        if not rates[row, series]:
            return None
        row += first
        before, after = self.values[row : row + 2, series].tolist()
        return SharpestChange(series, row, (self.steps[row], self.steps[row + 1]), (before, after))

    def halfway(self) -> Halfway | None:
        """When half of the largest change from the first snapshot to the last was made; None if
        nothing changed.
        """
        changes = np.nan_to_num(np.abs(self.values[-1] - self.values[0]))
        series = int(changes.argmax())
        if not changes[series]:
            return None
        share = (self.values[:, series] - self.values[0, series]) / (
            self.values[-1, series] - self.values[0, series]
        )
        after = int((share >= 0.5).argmax())
        earlier = self.steps[after - 1]
        later = self.steps[after]
        within = np.nan_to_num(
            (0.5 - share[after - 1]) / (share[after] - share[after - 1]), nan=1.0
        )
        return Halfway(series, earlier + float(within) * (later - earlier), (earlier, later))


def in_order(histories: Sequence[History]) -> list[tuple[History, Halfway]]:
    """The histories in the order in which they were half done, without those that did not
    change.
    """
    halves = [(history, half) for history in histories if (half := history.halfway()) is not None]
    return sorted(halves, key=lambda pair: pair[1].step)
