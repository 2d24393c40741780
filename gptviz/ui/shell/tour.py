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
_MODEL = "At the top: the **Model**, its **Training step** where it has snapshots, and the **Prompt**, the text that it reads."
_BELOW = "At the bottom: the numbers and the code of what is on screen, how it is computed, and what it cannot show."

# By page: its parts, then its keys. What is bold is written on the page in just these words.
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
        "A lesson stands in the side bar while the page beside it is live; on a phone it stands above the page, and a tap on its "
        "title folds it. Its address keeps your answers.",
        "At the bottom: **Write a lesson of your own**. **As one file** takes a lesson home.",
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
        "**Step** writes one token, **Play** writes on, **Undo** goes back. Temperature and cuts are beside them.",
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
        "The views: **Words** and **Attention** of this text, many **Held-out texts**, or **A file of yours**.",
        "Each bar says what a word does for the label.",
        _BELOW,
    ),
    "pages/translate.py": (
        "At the top: the model, and the source that it reads.",
        "The views: what the output reads in the source (**Cross-attention**), the **Next token** anywhere, or all outputs that "
        "a search looked at (**Beam search**).",
        _BELOW,
        *_EXPLORER,
    ),
    "pages/embeddings.py": (
        "At the top: the **Model**, and its **Training step** where it has snapshots. **Vectors** and **Projection** say what is "
        "drawn, and how.",
        "The map: each point is a token. Points that are near each other have similar vectors, as far as a plane can show it.",
        "Beside it: the tokens that are nearest to the chosen **Token**, measured in all dimensions.",
        _BELOW,
    ),
    "pages/positions.py": (
        _MODEL,
        "The squares compare each position with each other one: those of this model, and **Beside it** another kind.",
        "**One wave at a time**: the numbers behind them; the slider **Dimension** chooses a wave.",
        _BELOW,
    ),
    "pages/attention.py": (
        _MODEL,
        "The small squares: every head of every block, in an **Order** of your choice. Click one to see it large.",
        "In the middle: lines from each token to those it reads, or the pattern as a square.",
        "Below: the arithmetic of one cell, once a token that reads and one that is read are chosen.",
        *_EXPLORER,
        Keys("attention_explorer", ("+",), "puts the head beside the one that is shown"),
    ),
    "pages/gradients.py": (
        "At the top: **Depth (blocks)** of the fresh models, and how large their **Initial weights** are.",
        "On the left: how much of the gradient reaches each block, from right to left; a line for each kind of connection.",
        "On the right: the stream or the gradient of the weights, for comparison (**Beside it**).",
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
        "Which logit is taken apart: that of a token, **Minus the logit of** another one, after a **Position** of the text.",
        "The grid of parts: blue or red, each adds or takes away. A click, or the list **Head or MLP**, splits one further.",
        _BELOW,
        _CHIPS,
    ),
    "pages/stream.py": (
        _MODEL,
        "The views: what each part writes, the **Lengths** of the vectors, their **Directions**, and a **Map** of them.",
        "Choose a token to see it alone.",
        _BELOW,
    ),
    "pages/heads.py": (
        _MODEL,
        "**What each head does**: every head has a cell, and its colour is the **Score** that is chosen above.",
        "Click a head to see all its scores and its pattern. The other view: **Which head reads which**.",
        _BELOW,
    ),
    "pages/neurons.py": (
        _MODEL,
        "The list of the neurons of a **Block**, in the order that **Rank by** says.",
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
        "The **Corrupted prompt**, which differs in a token or two, and the two answers: **Right answer**, **Wrong answer**.",
        "Each cell of the pictures is one piece, put from the first text into the second: how much of the answer comes back?",
        _BELOW,
    ),
    "pages/circuit.py": (
        _MODEL,
        "The graph: from the tokens at one end to the logit at the other, only with the parts that matter most.",
        "A node shows what it gives and what it reads. **Share of the logit** says how much the graph must explain.",
        _BELOW,
        Keys("circuit_graph", (*_ARROWS, "Escape"), "lead from node to node, and let it go"),
    ),
    "pages/context.py": (
        _MODEL,
        "The curve: how the loss falls as the model sees more of the text.",
        "The tokens: which of them the guess needs. **A token that is left out is** says what stands there instead.",
        _BELOW,
    ),
    "pages/compare.py": (
        "At the top: side A. Below it side B, with another prompt, step, model or set of edits. **Swap A and B** exchanges them.",
        "The views: guesses, patterns, vectors or the whole stream of both, and the difference B minus A.",
        _BELOW,
    ),
    "pages/costs.py": (
        "At the top: the **Model**, **Batch (texts side by side)** and **Context (tokens of each text)**.",
        "**Where the parameters are**: parameters, operations and memory of each part, as formulas and as numbers.",
        "**What would it cost to train here?** A plan, and **Take some real steps** to measure it.",
    ),
    "pages/open_model.py": (
        "**On this machine**: models of other programs that are here already.",
        "**From the hub**: type a name, and it says how large the model is before anything is loaded.",
        "**Opened before**: your models, which you may take away.",
    ),
    "pages/train.py": (
        "On the right: **What to train**, on which data, and how. Press **Train** to begin.",
        "On the left: the run that is watched, its losses as they come, and what it writes.",
        "Below: inside the model, while it learns.",
        _BELOW,
    ),
    "pages/runs.py": (
        "The table: all models. Choose those whose curves you want to compare; **One model** renames or deletes one.",
        "The curves: the validation loss over the steps of training.",
        "Below: **What does each part bring?** shows the ladder, **The experiments** can each be trained here.",
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
