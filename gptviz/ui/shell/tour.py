"""The tour of a page: what its parts are, from top to bottom, and the keys of its views; a click away, beside the words."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class Keys:
    """Keys of a view.

    Attributes:
        view: the folder of the view's scripts in `gptviz/components`.
        keys: as the browser names them.
        does: what they do, once the view has the keyboard.
    """

    view: str
    keys: tuple[str, ...]
    does: str


# How keys are written for a reader; others as the browser names them.
SIGNS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", " ": "Space"}
_ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")

_CHIPS = Keys("token_strip", ("ArrowLeft", "ArrowRight", "Home", "End"), "lead from token to token; **Enter** chooses one")
_EXPLORER = (
    Keys("attention_explorer", _ARROWS, "lead from token to token, from cell to cell, or from head to head"),
    Keys("attention_explorer", ("Enter", "Escape"), "holds what is under the pointer, and lets it go"),
)
_MODEL = "At the top: the model, its step of training where it has snapshots, and the text that it reads."
_BELOW = "At the bottom: the numbers and the code of what is on screen, how it is computed, and what it cannot show."

# By page: its parts, then its keys.
TOURS: dict[str, tuple[str | Keys, ...]] = {
    "app.py": (
        _MODEL,
        "The map: the tokens enter at one end, and guesses leave at the other. Click a box to see what is computed in it.",
        "Below it, a card leads to each page.",
        Keys("model_map", ("ArrowLeft", "ArrowRight", "Enter"), "lead from box to box, and open one"),
        Keys("model_map", ("Escape",), "shuts what is open"),
    ),
    "pages/lessons.py": (
        "Each card is a lesson: its title begins it.",
        "A lesson stands in the side bar while the page beside it is live. Its address keeps your answers.",
        "At the bottom: how to write a lesson of your own.",
    ),
    "pages/next_token.py": (
        _MODEL,
        "The tokens of the text: click one to see the guess after it.",
        "The list: for each token its logit, its probability, and what temperature, top-k and top-p make of it.",
        _BELOW,
        _CHIPS,
        Keys("sampling_ledger", ("Escape",), "empties the search for a token"),
    ),
    "pages/generate.py": (
        _MODEL,
        "The buttons write one token, write on, or go back. Temperature and cuts are beside them.",
        "The tree: what was written. Click a token to see what else was possible there, and take another turn.",
        _BELOW,
        Keys(
            "generation_tree",
            ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"),
            "lead from token to token and branch to branch",
        ),
        Keys("generation_tree", ("Enter",), "goes on from there; **1** to **9** take another token in its place"),
    ),
    "pages/classify.py": (
        _MODEL,
        "The views: the words of this text, its attention, many texts held out, or a file of yours.",
        "Each bar says what a word does for the label.",
        _BELOW,
    ),
    "pages/translate.py": (
        "At the top: the model, and the source that it reads.",
        "The views: what the output reads in the source, the next token anywhere, or all outputs that a search looked at.",
        _BELOW,
        *_EXPLORER,
    ),
    "pages/embeddings.py": (
        "At the top: the model and its step of training.",
        "The map: each point is a token. Points that are near each other have similar vectors, as far as a plane can show it.",
        "Beside it: the tokens that are nearest to the chosen one, measured in all dimensions.",
        _BELOW,
    ),
    "pages/positions.py": (
        "At the top: the model, and the kind of positions that is shown.",
        "The square compares each position with each other one.",
        _BELOW,
    ),
    "pages/attention.py": (
        _MODEL,
        "The small squares: every head of every block. Click one to see it large.",
        "In the middle: lines from each token to those it reads, or the pattern as a square.",
        "Below: the arithmetic of one cell, once a token that reads and one that is read are chosen.",
        *_EXPLORER,
        Keys("attention_explorer", ("+",), "puts the head beside the one that is shown"),
    ),
    "pages/gradients.py": (
        "At the top: the depth of the fresh models, and how large their weights are.",
        "On the left: how much of the gradient reaches each block, from right to left; a line for each kind of connection.",
        "On the right: the stream or the gradient of the weights, for comparison.",
        _BELOW,
    ),
    "pages/lens.py": (
        _MODEL,
        "The grid: a row for each layer, a column for each token. A cell has the guess, if the model stopped there.",
        "Click a cell to see the other likely tokens there.",
        _BELOW,
        Keys("lens_grid", (*_ARROWS, "Home", "End"), "lead from cell to cell"),
        Keys("lens_grid", ("Enter", "Escape"), "opens a cell, and closes it"),
    ),
    "pages/attribution.py": (
        _MODEL,
        "Which logit is taken apart: the token, the one that is subtracted, and after which position.",
        "The grid of parts: blue or red, each adds or takes away. Click a head or an MLP to split it further.",
        _BELOW,
        _CHIPS,
    ),
    "pages/stream.py": (
        _MODEL,
        "The views: what each part writes, how long the vectors are, how they turn, and a map of them.",
        "Choose a token to see it alone.",
        _BELOW,
    ),
    "pages/heads.py": (
        _MODEL,
        "Every head has a cell; its colour is the score that is chosen above.",
        "Click a head to see all its scores and its pattern. The other view shows which heads read each other.",
        _BELOW,
    ),
    "pages/neurons.py": (
        _MODEL,
        "The list of a block's neurons, in the order that you choose.",
        "One neuron: where in the text it is active, what it speaks for, and what changes if you set it by hand.",
        _BELOW,
        _CHIPS,
    ),
    "pages/switch_off.py": (
        _MODEL,
        "The grid of all heads and MLPs: click one to switch it off, and again to bring it back.",
        "Below: the guesses with and without, side by side. All other pages show the model with these edits too.",
        _BELOW,
        Keys("unit_grid", _ARROWS, "lead from part to part; **Enter** switches one"),
    ),
    "pages/patching.py": (
        _MODEL,
        "The second text, which differs in a token or two, and the two answers.",
        "Each cell of the pictures is one piece, put from the first text into the second: how much of the answer comes back?",
        _BELOW,
    ),
    "pages/circuit.py": (
        _MODEL,
        "The graph: from the tokens at one end to the logit at the other, only with the parts that matter most.",
        "A node shows what it gives and what it reads. The slider says how much of the logit the graph must explain.",
        _BELOW,
        Keys("circuit_graph", (*_ARROWS, "Escape"), "lead from node to node, and let it go"),
    ),
    "pages/context.py": (
        _MODEL,
        "The curve: how the loss falls as the model sees more of the text.",
        "The tokens: which of them the guess needs.",
        _BELOW,
    ),
    "pages/compare.py": (
        "At the top: side A. Below it side B, with another prompt, step, model or set of edits.",
        "The views: guesses, patterns, vectors or the whole stream of both, and the difference B minus A.",
        _BELOW,
    ),
    "pages/costs.py": (
        "At the top: the model, how many tokens it reads, and how many texts side by side.",
        "The table: parameters, operations and memory of each part, as formulas and as numbers.",
        "The planner: what training it on this machine would cost.",
    ),
    "pages/open_model.py": (
        "Models of other programs that are on this machine already.",
        "From the hub: type a name, and it says how large the model is before anything is loaded.",
        "Models that you opened before, which you may give another name or take away.",
    ),
    "pages/train.py": (
        "On the right: what to train, on which data, and how. Press Train to begin.",
        "On the left: the run that is watched, its losses as they come, and what it writes.",
        "Below: inside the model, while it learns.",
        _BELOW,
    ),
    "pages/runs.py": (
        "The table: all models. Choose those whose curves you want to compare.",
        "The curves: the validation loss over the steps of training.",
        "Below: what each part of the ladder brings, and all experiments, each of which can be trained here.",
    ),
}


def tour_button(path: str) -> None:
    """A button that unfolds the tour of the page whose script is at `path`."""
    with st.popover("?", type="tertiary", help="What the parts of this page are, and its keys."):
        st.markdown("\n".join(f"- {_line(line)}" for line in TOURS[path]))


def _line(line: str | Keys) -> str:
    if isinstance(line, str):
        return line
    return f"Keys {' '.join(f'**{SIGNS.get(key, key)}**' for key in line.keys)}: {line.does}."
