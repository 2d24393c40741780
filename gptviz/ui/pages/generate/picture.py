"""The tree of a text as it is sent to the browser, packed again only when something has changed."""

from __future__ import annotations

import numpy as np

from gptviz.components import generation_tree
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Ghost, Look
from gptviz.components.kit import Packed
from gptviz.figures.kit.format import counted
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading.next_token import predict
from gptviz.ui.shell.subject import load_call

from . import link
from .writing import ALTERNATIVES, Writing


class Picture:
    """The tree of a text as the browser's view takes it."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing
        self._ghosts: tuple[object, tuple[Ghost, ...]] = None, ()
        self._packed: tuple[object, Packed | None] = None, None
        self._finished = Finished()

    def packed(self) -> Packed:
        """The same bytes as long as nothing changes."""
        writing = self.writing
        with writing.lock:
            state = *writing.state, writing.playing, writing.full, writing.attention_of, writing.linked
            before, packed = self._packed
            if packed is None or before != state:
                packed = generation_tree.packed(writing.tree, self._look(), self._finished, writing.attention_of)
                self._packed = state, packed
            return packed

    def ghosts(self) -> tuple[Ghost, ...]:
        """The likeliest next tokens, under the present settings."""
        writing = self.writing
        with writing.lock:
            state = (writing.tree.current, writing.sampling)
            if self._ghosts[0] != state:
                never = writing.lm.tokenizer.unused_ids  # at the end of the vocabulary
                prediction = predict(writing.logits(), writing.sampling, never)
                before = prediction.before[: len(prediction.before) - len(never)]
                few = min(ALTERNATIVES, len(before))
                top = sorted(np.argpartition(-before, few - 1)[:few].tolist(), key=lambda i: (-before[i], i))
                ghosts = (Ghost(i, float(before[i]), float(prediction.after[i]), str(prediction.cut[i])) for i in top)
                self._ghosts = state, tuple(ghosts)
            return self._ghosts[1]

    def _look(self) -> Look:
        writing = self.writing
        return Look(
            writing.number,
            writing.labels,
            writing.lm.tokenizer.label,
            sampling_in_words,
            self.ghosts(),
            code="" if writing.playing else code(writing),
            playing=writing.playing,
            full=writing.full,
            spaced=writing.spaced,
            status=status(writing),
            heading=heading(writing),
            address=link.address(writing),
        )


def code(writing: Writing) -> str:
    """The lines of Python that make the same tree."""
    return generation_tree.code(load_call(writing.lm), writing.prompt, writing.tree)


def heading(writing: Writing) -> dict[str, object]:
    """The heading of a picture of the tree: the model, the prompt, and how the branch on screen was chosen."""
    step = "" if writing.lm.step is None else f", step {writing.lm.step:,}"
    drawn = dict.fromkeys(node.drawn for node in writing.written if node.drawn is not None)
    by_hand = sum(node.drawn is None and not node.origin for node in writing.written)
    settings = [f"drawn with {sampling_in_words(sampling)}, seed {sampling.seed}" for sampling in drawn]
    settings += [f"{counted(by_hand, 'token')} chosen by hand"] if by_hand else []
    settings += dict.fromkeys(node.origin for node in writing.written if node.origin)
    edits = f", {counted(len(writing.edits), 'edit')}" if writing.edits else ""
    return {"model": writing.lm.name + step + edits, "prompt": writing.prompt, "settings": settings}


def status(writing: Writing) -> str:
    """How long the text is, how fast the model computes it, and what is never drawn."""
    rate, unused = writing.speedometer.tokens_per_second, len(writing.lm.tokenizer.unused_ids)
    said = [counted(writing.length, "token")]
    said += [f"computed at {rate:,.0f} a second"] if rate else []
    said += [f"{counted(unused, 'unused token')} of the vocabulary never drawn"] if unused else []
    return ", ".join(said)


def sampling_in_words(sampling: Sampling) -> str:
    """The settings in a few words."""
    parts = ["the likeliest" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"]
    parts += [f"top-k {sampling.top_k}"] if sampling.top_k else []
    parts += [f"top-p {sampling.top_p:g}"] if sampling.top_p else []
    return ", ".join(parts)
