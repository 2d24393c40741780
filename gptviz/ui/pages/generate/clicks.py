"""What a click on the tree does. Clicks come from the browser: a click on something that does not exist does nothing."""

from __future__ import annotations

from typing import Any

from gptviz.components import generation_tree

from .writing import Writing


def go(writing: Writing, fields: dict[str, Any]) -> bool:
    """Go to the token that was clicked, as `generation_tree.place` reads it, and say whether there is such a token."""
    with writing.lock:
        if (node := generation_tree.place(fields, writing.tree, writing.number)) is None:
            return False
        writing.go(node)
        return True


def take(writing: Writing, fields: dict[str, Any]) -> bool:
    """Go on with another token, as `generation_tree.taken` reads it, and say whether there is such a token."""
    with writing.lock:
        if (chosen := generation_tree.taken(fields, writing.tree, writing.number)) is None:
            return False
        writing.take(chosen[1], chosen[0])
        return True


def attend(writing: Writing, fields: dict[str, Any]) -> bool:
    """Show the attention of a step, as `generation_tree.place` reads it, and say whether there is such a step."""
    with writing.lock:
        if (node := generation_tree.place(fields, writing.tree, writing.number)) is None:
            return False
        writing.attend(node)
        return True
