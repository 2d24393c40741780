"""A table on a page: on the screen it scrolls, and is drawn where it is seen; on paper it is
whole.
"""

from __future__ import annotations

from html import escape
from numbers import Integral, Real
from typing import Any

import pandas as pd
import streamlit as st

# More rows are not printed: a browser keeps all of them although nobody sees them.
MOST_PRINTED = 500


def show_table(rows: pd.DataFrame, **look: Any) -> None:
    """Show `rows`; `look` are other arguments of `st.dataframe`."""
    with st.container(gap=None, height="stretch" if look.get("height") == "stretch" else "content"):
        st.dataframe(rows, **look)
        st.html(
            on_paper(rows, look.get("column_config", {}), hide_index=look.get("hide_index", False))
        )


def on_paper(rows: pd.DataFrame, columns: dict[str, Any], *, hide_index: bool) -> str:
    """The table as HTML, which kit/page.css hides on the screen, its numbers in the formats of
    `columns`.
    """
    shown = (rows if hide_index else rows.reset_index()).head(MOST_PRINTED)
    formats = {
        name: (columns.get(name) or {}).get("type_config", {}).get("format") or "" for name in shown
    }
    head = "".join(f"<th>{escape(str(name))}</th>" for name in shown)
    cells = ([_cell(value, formats[name]) for value in shown[name]] for name in shown)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    if left := len(rows) - len(shown):
        more = f"<p>{left:,} more rows are not printed.</p>"
    else:
        more = ""
    return (
        "<div "
        f'class="on-paper"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>'
    )


def _cell(value: Any, form: str) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "<td></td>"
    if not isinstance(value, Real) or isinstance(value, bool):
        return f"<td>{escape(str(value))}</td>"
    usual = "," if isinstance(value, Integral) else ",.6g"
    return f"<td>{form % value if form.startswith('%') else format(value, usual)}</td>"
