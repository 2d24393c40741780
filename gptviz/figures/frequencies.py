"""How often tokens come in a text, as bars, the most frequent first."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.matrix import MARGIN
from gptviz.figures.special_tokens import short_label
from gptviz.figures.theme import Theme, base, plain
from gptviz.labelled_array import LabelledArray

MOST = 40  # bars: beyond, their labels would touch
LONGEST_LABEL = 12


def frequencies(shares: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """A bar for each of the first `MOST` of `shares` [token], which are sorted."""
    (tokens,) = shares.axes
    values, labels = shares.values[:MOST], tokens.labels[:MOST]
    bars = go.Bar(
        x=list(range(len(labels))),
        y=values,
        marker={"color": theme.text},
        opacity=0.7,
        customdata=[plain(label) for label in labels],
        hovertemplate="<b>%{customdata}</b><br>%{y:.3~%} of all tokens<extra></extra>",
    )
    figure = go.Figure([bars], base(theme, height=height))
    font = {"size": 12, "color": theme.text}
    names = [plain(short_label(label), LONGEST_LABEL) for label in labels]
    is_narrow = all(len(short_label(label)) <= 1 for label in labels)
    rest = len(tokens.labels) - len(labels)
    more = f", the {len(labels)} most frequent of {len(tokens.labels):,}" if rest else ""
    return figure.update_layout(
        margin=MARGIN if is_narrow else MARGIN | {"b": 100},
        bargap=0.25,
        showlegend=False,
        xaxis={
            "title": {"text": f"token{more}", "font": font},
            "tickvals": list(range(len(labels))),
            "ticktext": names,
            "tickangle": 0 if is_narrow else -90,
            "tickfont": {"family": "monospace", **font},
            "fixedrange": True,
        },
        yaxis={
            "title": {"text": "share of all tokens", "font": font},
            "tickformat": "~%",
            "tickfont": font,
            "gridcolor": theme.faint,
            "fixedrange": True,
        },
    )
