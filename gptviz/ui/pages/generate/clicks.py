"""The clicks on the tree. They come from the browser: a click on something that does not exist does nothing."""

from __future__ import annotations

from collections.abc import Callable

from gptviz.components import generation_tree

from .writing import Writing


def go(writing: Writing, event: object) -> bool:
    """Go to the token that was clicked, and return whether there is such a token."""
    return _at(writing, event, writing.go)


def attend(writing: Writing, event: object) -> bool:
    """Show the attention of the step that was clicked, and return whether there is such a step."""
    return _at(writing, event, writing.attend)


def _at(writing: Writing, event: object, act: Callable[[int], None]) -> bool:
    with writing.lock:
        if (node := generation_tree.place(event, writing.tree, writing.number)) is None:
            return False
        act(node)
        return True


def take(writing: Writing, event: object) -> bool:
    """Go on with another token, as `generation_tree.taken` reads it, and return whether there is such a token."""
    with writing.lock:
        if (chosen := generation_tree.taken(event, writing.tree, writing.number)) is None:
            return False
        writing.take(chosen[1], chosen[0])
        return True
