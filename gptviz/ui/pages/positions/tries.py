"""The suggestions of the page Positions."""

from __future__ import annotations

from collections.abc import Sequence

from gptviz.interp.reading import positions
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import ModelKey, Subject
from gptviz.ui.widgets import Try, escaped

from .computed import bias, model_with, similarity
from .show import rounded

WORD_MORE = "the cat sat", "the yellow cat sat"


def tries(subject: Subject, own: str, fixed: Sequence[str]) -> list[Try]:
    """The suggestions for this model with positions of the kind `own`; it could use the `fixed` kinds without training."""
    offers = []
    if own != "learned" and (learned := model_with("learned")):
        about = (
            f"Opens the model {escaped(learned)}, which had to learn the order of positions by itself. Do near positions look "
            "alike to it? The line below its map says how much."
        )
        offers.append(Try("Learned positions", about, {"model": learned}))
    if own != "alibi" and "alibi" in fixed and subject.lm.model.config.n_head > 1:
        offers.append(Try("Steep and flat heads", _steepness(subject.key), {"beside": "alibi"}))
    if (offer := _a_word_more(subject, own)) is not None:
        offers.append(offer)
    size = subject.lm.model.config.d_model
    if "sinusoidal" in (own, *fixed) and size > 2:
        slow = size * 3 // 4
        about = (
            f"Dimension {slow} repeats every {rounded(positions.period(slow, size))} positions and tells far from near; "
            f"dimension 0 repeats every {rounded(positions.period(0, size))} and tells neighbours apart."
        )
        offers.append(Try("A slow wave", about, {"table": "sinusoidal", "wave": slow}))
    return offers


def _a_word_more(subject: Subject, own: str) -> Try | None:
    """The example of the original experiment (Wheeler 2024): with one more word, everything after it is at another position.
    None if the model cannot read it, or has no positions.
    """
    before, after = (subject.lm.tokenizer.encode(text) for text in WORD_MORE)
    config = subject.lm.model.config
    fits = len(after.ids) <= config.context_length and positions.shown(config).step == 1
    if subject.kind != "decoder" or subject.on_task or after.unknown or not fits or POSITIONS[own].acts_on == "nothing":
        return None
    old, new = len(before.ids) - 1, len(after.ids) - 1
    about = f"“{WORD_MORE[0]}” with one more word: its last token moves from position {old} to {new}. "
    if POSITIONS[own].acts_on == "embedding":
        cosine = similarity(subject.key, own, 0)[0].values[old, new]
        about += f"To this model these are two different vectors (cosine {cosine:.2f}), and “cat” has moved too.".replace(
            "-", "−"
        )
    else:
        about += "This model’s scores depend only on distances, and “sat” is as far from “cat” as before."
    return Try("A word more", about, {"prompt": WORD_MORE[1]})


def _steepness(key: ModelKey) -> str:
    """How far the heads of this model would look if it had ALiBi."""
    reaches = positions.reaches(bias(key, "alibi", 0))
    near = [(reach, head) for head, reach in enumerate(reaches) if reach is not None]
    if not near:
        return "In such a short context no head of ALiBi takes as much as 1 from a score."
    (nearest, steep), (farthest, flat) = min(near), max(near)
    return (
        f"ALiBi lowers a score with the distance, more quickly in some heads than in others: head {steep} takes 1 from a score "
        f"within {nearest} positions, head {flat} only after {farthest}. A score that is 1 lower gets about a third of the "
        "weight."
    )
