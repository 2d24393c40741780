"""The lens that is read through: the logit lens, or one that is fitted to the model; and how well each foretells the guess."""

from __future__ import annotations

import streamlit as st

from gptviz.figures.kit.format import brief, percent
from gptviz.figures.reading.lens import by_layer
from gptviz.interp.reading.fitted_lens import KINDS, KL, FittedLens, LensKind
from gptviz.interp.reading.layers import layers
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import fitted
from gptviz.ui.shell.subject import Subject, ask
from gptviz.ui.views.texts import text_to_fit
from gptviz.ui.widgets import capitalised, controls, show_figure, theme

NAMES: dict[LensKind, str] = {"logit": "logit lens", "jacobian": "Jacobian lens", "tuned": "tuned lens"}
_HEIGHT = 300


def choice(subject: Subject) -> tuple[LensKind, str | None]:
    """The controls. Return the kind of lens, and the text that it is fitted to. None means the data held out of training."""
    if subject.kind != "decoder" or not subject.lm.model.config.n_layer:
        return "logit", None
    about = (
        "Logit: the stream of every layer goes to the head as it is. The others first bring it to where the last layer is. "
        "Jacobian: by the mean effect of the layer on the last one. Tuned: by a map that is fitted to the model's own guesses."
    )
    offered = [NAMES[kind].removesuffix(" lens") for kind in KINDS]
    kind = KINDS[offered.index(controls.select("Lens", offered, key="kind", help=about, segmented=True))]
    if kind == "logit":
        return kind, None
    return kind, text_to_fit(subject)


def found(subject: Subject, kind: LensKind, text: str | None) -> FittedLens | None:
    """The fitted lens. While it is still being fitted, show how far that is and a way to stop it, and return None."""
    asked = ask(subject, fitted.fitted_lens, f"Fitting the {NAMES[kind]}", kind=kind, text=text)
    return asked.followed("Fit the lens")


def foretold(subject: Subject, lens: FittedLens, kind: LensKind) -> None:
    """How near the guesses after each layer are to the model's own: of the logit lens, and of this one."""
    table = lens.labelled(subject.lm.model, kind)
    shorts = [layer.short for layer in layers(subject.lm.model.config)]
    st.markdown(f"**How well each layer foretells the model's guess: logit lens and {NAMES[kind]}**")
    for column, measure in zip(st.columns(2, gap="medium"), table.axes[1].labels, strict=True):
        values = table.values[:, table.axes[1].labels.index(measure)]
        lines = LabelledArray(values, (table.axes[0], table.axes[2]), measure)
        with column:
            show_figure(
                by_layer(lines, shorts, theme(), height=_HEIGHT),
                key="lens KL" if measure == KL else "lens agreement",
                alt=f"{capitalised(measure)}, after each layer, of the logit lens and of the {NAMES[kind]}.",
            )
    middle = len(shorts) // 2
    (plain, agrees), (other, also) = table.values[:, :, middle]
    st.caption(
        f"Over text that the lens was not fitted to. After {layers(subject.lm.model.config)[middle].title} the guess of the "
        f"logit lens is {brief(plain)} nats from the model's, and has its first token at {percent(agrees)} of the places; that "
        f"of the {NAMES[kind]} {brief(other)} nats, and {percent(also)}."
    )


def about(kind: LensKind) -> str:
    """What a fitted lens does before the head reads a row; empty for the logit lens."""
    said = {
        "jacobian": "Before that, each vector is multiplied with the mean effect that this layer has on the last one, at its own "
        "place and all later ones: what it makes the model likely to say, now or later.",
        "tuned": "Before that, each vector goes through a map of its layer that was fitted so that the guess comes near the "
        "model's own.",
    }
    return said.get(kind, "")
