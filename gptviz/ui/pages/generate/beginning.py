"""The text that the page Generate opens on: some tokens, and a branch beside them."""

from __future__ import annotations

from time import perf_counter

from .writing import Writing

# The text has so many tokens, or fewer of a slow model; and so does the branch.
FIRST_TOKENS, FIRST_SECONDS = 120, 1.5
FORK_TOKENS, FORK_SECONDS = 60, 0.7
# While training is played, a text is shown for a moment only.
FRAME_SECONDS = 0.12


def begin(writing: Writing) -> None:
    """Write the text that the page opens on, with a branch."""
    grow(writing, FIRST_TOKENS - writing.length, FIRST_SECONDS)
    fork(writing)


def begin_short(writing: Writing) -> None:
    """Write what there is time for between two steps of training that is being played."""
    writing.cut_short = True
    grow(writing, FIRST_TOKENS, FRAME_SECONDS)


def grow(writing: Writing, tokens: int, seconds: float) -> None:
    """Draw up to `tokens` tokens, fewer where that takes longer than `seconds`."""
    started = perf_counter()
    while tokens > 0 and perf_counter() - started < seconds:
        writing.step()
        tokens -= 1


def fork(writing: Writing) -> None:
    """Write beside the text how it goes on from another token, where the model gave that one nearly as high a probability.

    The place is in the first half of the text, after its first sixth.
    """
    with writing.lock:
        path, current = writing.written, writing.tree.current
        others = [
            (candidate.probability, node.parent, candidate.token)
            for node in path[len(path) // 6 : -(-len(path) // 2)]
            if node.parent is not None
            for candidate in node.candidates
            if candidate.token not in writing.tree.nodes[node.parent].children
        ]
        if not others:
            return
        _, after, token = max(others)
        writing.take(token, after)
        grow(writing, FORK_TOKENS - 1, FORK_SECONDS)
        writing.go(current)
