"""The lens that is read through: the logit lens, or one that is fitted to the model; and how well
each foretells the guess.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from gptviz.figures.kit.format import brief, percent
from gptviz.figures.reading.lens import by_layer
from gptviz.interp.reading.fitted_lens import KL, FittedLens
from gptviz.interp.reading.layers import layers
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import fitted
from gptviz.language_model.fitted import kept_lens
from gptviz.runs import fitted as kept
from gptviz.runs import names
from gptviz.settings.address_values import ANY
from gptviz.settings.kinds import LensKind
from gptviz.ui.shell.subject import Subject, ask
from gptviz.ui.views import held_out
from gptviz.ui.views.files import download, read_in
from gptviz.ui.views.texts import text_to_fit
from gptviz.ui.widgets import (
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    show_figure,
    theme,
)

NAMES: dict[LensKind, str] = {
    "logit": "logit lens",
    "jacobian": "Jacobian lens",
    "tuned": "tuned lens",
}
# The key of the address with the name of the lens that was read from a file.
FILE = "lens"
_HEIGHT = 300


class LensChoice(NamedTuple):
    """A lens, as the controls say it."""

    kind: LensKind  #: what the head reads
    #: what it is fitted to; None for the data that was held out of training
    text: str | None = None
    #: the name of a lens that was read from a file; it is measured over the text
    kept: str | None = None


def choice(subject: Subject) -> LensChoice | None:
    """The controls, and what they say; None after a message that asks for a file."""
    if not subject.kind.continues or not subject.lm.model.config.n_layer:
        return LensChoice("logit")
    offered = {name.removesuffix(" lens"): kind for kind, name in NAMES.items()}
    kind = offered[controls.choose(LensKind, list(offered), key="kind")]
    if kind == "logit":
        return LensChoice(kind)
    hint = "A Jacobian lens that others have fitted to this model, and published."
    if kind == "jacobian" and controls.switch("From a file", key="from_file", help=hint):
        return _from_file(subject)
    return LensChoice(kind, text_to_fit(subject))


def _from_file(subject: Subject) -> LensChoice | None:
    """Where a file with a lens is dropped, and the lens. The address has the name that it is kept
    under.
    """
    hint = (
        "A file of jlens, Neuronpedia, TransformerLens or this page, which ends in .pt. It is "
        "kept in your folder; nothing in it "
        "is run."
    )

    def read_file(path: Path) -> None:
        addresses.write(FILE, subject.lm.read_lens(path))

    read_in("A file with a lens", "pt", read_file, key="file with a lens", help=hint)
    addresses.accept_values(FILE, ANY)
    if (name := st.query_params.get(FILE)) is None:
        return None
    try:
        kept_lens(subject.lm, name)
    except ValueError as error:
        st.info(f"{escape_markdown(str(error))}.")
        return None
    return LensChoice("jacobian", held_out.text_to_fit(subject.key), name)


def find_lens(subject: Subject, chosen: LensChoice) -> FittedLens | None:
    """The fitted lens. While it is still being fitted, show how far that is and a way to stop it,
    and return None.
    """
    settings = {"kind": chosen.kind, "text": chosen.text, "kept": chosen.kept}
    doing = "Fitting" if chosen.kept is None else "Measuring"
    if chosen.kept is None:
        work = fitted.effort_of_lens(subject.lm, chosen.kind, chosen.text)
    else:
        work = 0.0
    return ask(
        subject.key.unedited, fitted.fitted_lens, f"{doing} the {NAMES[chosen.kind]}", **settings
    ).follow_value("Fit the lens", work)


def take_home(subject: Subject, chosen: LensChoice) -> None:
    """The button for the lens as a file."""
    if chosen.kind == "jacobian":
        others = "jlens, Neuronpedia and this page"
    else:
        others = "only this page"
    hint = f"What it has for the end of each block but the last, as {others} read it."

    def write(path: Path) -> None:
        subject.lm.write_lens(path, chosen.kind, chosen.text)

    if chosen.kept is None and subject.lm.model.config.n_layer > 1:
        download(
            "Download the lens",
            f"{names.possible_name(subject.key.name)}-{chosen.kind}-lens.pt",
            write,
            help=hint,
        )


def show_measures(subject: Subject, lens: FittedLens, chosen: LensChoice) -> None:
    """How near the guesses after each layer are to the model's own: of the logit lens, and of this
    one.
    """
    kind = chosen.kind
    own = "text that the lens was not fitted to"
    over = own if chosen.kept is None else _measured_over(subject, chosen)
    table = lens.labelled(subject.lm.model, kind)
    every = layers(subject.lm.model.config)
    shorts = [every[row].short for row in lens.at]
    st.markdown(
        f"**How well each layer foretells the model's guess: logit lens and {NAMES[kind]}**  \n"
        f"{lens.compare_lenses(subject.lm.model, kind)} {lens.support}"
    )
    for column, measure in zip(st.columns(2, gap="medium"), table.axes[1].labels, strict=True):
        values = table.values[:, table.axes[1].labels.index(measure)]
        lines = LabelledArray(values, (table.axes[0], table.axes[2]), measure)
        with column:
            show_figure(
                by_layer(lines, shorts, theme(), height=_HEIGHT),
                key="lens KL" if measure == KL else "lens agreement",
                alt=f"{capitalise_text(measure)}, after each layer, of the logit lens and of the "
                f"{NAMES[kind]}.",
            )
    middle = len(shorts) // 2
    (plain, agrees), (other, also) = table.values[:, :, middle]
    st.caption(
        f"Over {over}. After {every[lens.at[middle]].title} the guess of the "
        f"logit lens is {brief(plain)} nats from the model's, and has its first token at "
        f"{percent(agrees)} of the places; that "
        f"of the {NAMES[kind]} {brief(other)} nats, and {percent(also)}."
    )
    if not kept.is_kept(lens.name):
        st.caption(
            "This lens is in memory until the server ends. It is not in your folder: there was no "
            "room for it, or its file was removed."
        )


def _measured_over(subject: Subject, chosen: LensChoice) -> str:
    """What a lens from a file is measured over."""
    if chosen.text is not None:
        return "passages of books"
    if subject.lm.card.source is None:
        return "text that the model wrote itself"
    return "the data held out of training"


def explain_lens(kind: LensKind) -> str:
    """What a fitted lens does before the head reads a row; empty for the logit lens."""
    said = {
        "jacobian": "Before that, each vector is multiplied with the mean effect that this layer "
        "has on the last one, at its own place and all later ones: what it makes the model likely "
        "to say, now or later.",
        "tuned": "Before that, each vector goes through a map of its layer that was fitted so that "
        "the guess comes near the model's own.",
    }
    return said.get(kind, "")
