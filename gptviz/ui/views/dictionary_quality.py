"""How good a dictionary is: how much of the stream its features give back, and what the model loses
that goes on with that.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import percent
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.dictionaries.quality import Quality
from gptviz.language_model import dictionaries
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, ask, language_model
from gptviz.ui.widgets import escape_markdown
from gptviz.ui.widgets.tables import show_table


def ask_quality(key: ModelKey, dictionary: str, text: str | None) -> AskedAnalysis[Quality]:
    """How good a dictionary is over the data held out of training, or over the last fifth of a
    text.
    """
    return ask(
        key,
        dictionaries.dictionary_quality,
        "Measuring the dictionary",
        dictionary=dictionary,
        text=text,
    )


def show_quality(dictionary: Dictionary, quality: Quality) -> None:
    """The numbers in a sentence, and the losses beside that with a random dictionary as a table."""
    st.markdown(
        f"**{escape_markdown(dictionary.name)}**: its features give back "
        f"{percent(quality.explained)} of "
        f"the variance of {quality.of}, "
        f"{quality.l0:.1f} of them at a token, and {percent(quality.recovered)} of the loss; "
        f"{percent(quality.dead)} are dead. {dictionary.support} "
        f"As an edit of all pages one of them is `{dictionary.edit(0, 4)}`."
    )
    losses = quality.labelled()
    rows = pd.DataFrame({losses.axes[0].name: losses.axes[0].labels, "loss (nats)": losses.values})
    show_table(rows, hide_index=True)


def show_beside(key: ModelKey, text: str | None) -> None:
    """All dictionaries of a model in a table, once they are measured: size, sparsity, and what
    they give back.
    """
    asked = ask(key, dictionaries.compare_dictionaries, "Measuring the dictionaries", text=text)
    measuring, say_how_far = asked.on_demand(begins=False)
    if measuring is not None and measuring.value is not None:
        lm = language_model(key)
        read = {name: lm.dictionary(name) for name in measuring.value}
        rows = pd.DataFrame(
            [
                {
                    "dictionary": name,
                    "gives back": read[name].of,
                    "features": len(read[name].encoder),
                    "active at a token": round(quality.l0, 1),
                    "explained": percent(quality.explained),
                    "dead": percent(quality.dead),
                    "loss with it (nats)": quality.loss_with,
                    "loss (nats)": quality.loss,
                }
                for name, quality in measuring.value.items()
            ]
        )
        show_table(rows, hide_index=True)
    say_how_far(
        "Measure all",
        "Measure all again",
        "dictionaries",
        "All dictionaries of this model over the same text, side by side.",
    )
