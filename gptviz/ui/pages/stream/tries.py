"""The suggestions of the page Residual stream."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.format import brief, fixed, percent
from gptviz.figures.reading import stream as figures
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.stream import StreamSummary
from gptviz.ui.records.stream import DIRECTIONS, LENGTHS, MAP, WRITTEN
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.read import Read
from gptviz.ui.widgets import Try, capitalised, escaped

from .computed import ALL, DIRECTION, cosines_of, lengths_of, maps_of, median_of, shares_of, stream_summary

# The vector of a position is called long if it is this many times as long as the median.
LONG = 3.0


def tries(subject: Subject, read: Read) -> list[Try]:
    """The suggestions for this model and text; all sentences are computed from its stream."""
    if not _can_be_read(stream_summary(subject.key, read)):
        return []
    return [one for one in (_loudest(subject, read), _long(subject, read), _turn(subject, read), _spread(subject, read)) if one]


def _can_be_read(seen: StreamSummary) -> bool:
    return bool(seen.writers) and bool(np.isfinite(seen.states.numpy()).all())


def _title(seen: StreamSummary, writer: str) -> str:
    by_name = {layer.name: layer.title for layer in seen.layers}
    _, block, part = writer.split(".")
    return by_name.get(writer, f"the {figures.WRITERS[part][-1]} of block {block}")


def who_writes_most(subject: Subject, read: Read) -> str:
    """The sublayer that writes most against the stream it finds, and the one that writes least; empty where nothing
    can be said.
    """
    seen = stream_summary(subject.key, read)
    if not _can_be_read(seen):
        return ""
    median = median_of(shares_of(subject.key, read), 2)[0]
    most, least = int(median.argmax()), int(median.argmin())
    if most == least:
        return ""
    return (
        f"Measured by the stream that it finds, {_title(seen, seen.writers[most])} writes most ({brief(median[most])} times its "
        f"length) and {_title(seen, seen.writers[least])} least ({brief(median[least])})."
    )


def _loudest(subject: Subject, read: Read) -> Try | None:
    notice = who_writes_most(subject, read)
    return Try("Who writes most", notice, {"view": WRITTEN}, {"position": ALL}) if notice else None


def _long(subject: Subject, read: Read) -> Try | None:
    """A position whose vector becomes far longer than the others."""
    seen, shown = stream_summary(subject.key, read), lengths_of(subject.key, read)
    ratio = shown.values / np.maximum(median_of(shown, 1)[:, None], 1e-12)
    layer, index = (int(one) for one in np.unravel_index(ratio.argmax(), ratio.shape))
    if ratio[layer, index] < LONG:
        return None
    notice = (
        f"After {seen.layers[layer].title} the vector of position {seen.positions[index]}, "
        f"“{escaped(shown.axes[1].labels[index])}”, is {brief(ratio[layer, index])} times as long as the median."
    )
    return Try("A long vector", notice, {"view": LENGTHS})


def _turn(subject: Subject, read: Read) -> Try:
    """The sublayer that turns the stream most."""
    seen, cosines = stream_summary(subject.key, read), cosines_of(subject.key, read, None).values
    steps = cosines.diagonal(1)
    at = int(steps.argmin())
    notice = (
        f"{capitalised(seen.layers[at + 1].title)} turns the stream most: before and after it the "
        f"vectors have a cosine of {fixed(float(steps[at]))} on average."
    ).replace("-", "−")
    return Try("The sharpest turn", notice, {"view": DIRECTIONS}, {"position": ALL})


def _spread(subject: Subject, read: Read) -> Try | None:
    """How much of the variance two directions hold at both ends of the model."""
    if len(stream_summary(subject.key, read).positions) < embeddings.FEWEST_PLACED:
        return None
    _, pictures = maps_of(subject.key, read, True)
    first, last = (sum(picture.explained) for picture in (pictures[0], pictures[-1]))
    notice = (
        f"After the embedding two directions hold {percent(first)} of the variance of the positions, at the end "
        f"{percent(last)}. Move the slider from layer to layer and watch which tokens come together."
    )
    layer = stream_summary(subject.key, read).layers[0].name
    return Try("From tokens to guesses", notice, {"view": MAP, "method": "PCA", "vectors": DIRECTION, "layer": layer})
