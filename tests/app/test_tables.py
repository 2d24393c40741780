"""Tables on paper: all rows, in the formats of their columns, no markup. As CSV files: what Excel
reads is what is here.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from html import unescape

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.text import texts_of
from gptviz.ui.pages.classify.own_file import File, predictions
from gptviz.ui.widgets.details import as_csv
from gptviz.ui.widgets.tables import MOST_PRINTED, on_paper
from tests.browser.machinery import HOSTILE, ROOT


def rows(html: str) -> list[list[str]]:
    """The cells of a printed table, its head first."""
    assert (
        re.sub(r"</?(div|table|thead|tbody|tr|th|td|p)( class=\"on-paper\")?>", "", html).count("<")
        == 0
    )
    return [
        [unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", html)
    ]


def test_the_printed_table_has_every_value_in_the_format_of_its_column() -> None:
    table = pd.DataFrame(
        {
            HOSTILE[0]: list(HOSTILE[:3]),
            "loss": [0.12345, np.nan, 2.0],
            "count": pd.array([12345, None, 1], dtype="Int64"),
            "right": [True, False, True],
            "place": np.array([1, 2, 3]),
        }
    )
    formats = {"loss": st.column_config.NumberColumn(format="%.2f"), "place": None}
    head, *lines = rows(on_paper(table, formats, hide_index=True))
    assert head == [HOSTILE[0], "loss", "count", "right", "place"]
    assert lines[0] == [HOSTILE[0], "0.12", "12,345", "True", "1"]
    assert [line[1:] for line in lines[1:]] == [["", "", "False", "2"], ["2.00", "1", "True", "3"]]


def test_rows_have_their_names_and_what_is_left_out_is_counted() -> None:
    names = pd.Index([f"row {i}" for i in range(MOST_PRINTED + 7)], name="of")
    many = pd.DataFrame({"value": range(len(names))}, index=names)
    html = on_paper(many, {}, hide_index=False)
    head, first, *others = rows(html)
    assert (head, first) == (["of", "value"], ["row 0", "0"])
    assert len(others) == MOST_PRINTED - 1
    assert "7 more rows are not printed" in html


def test_every_table_of_a_page_is_whole_on_paper() -> None:
    files = (ROOT / "gptviz").rglob("*.py")
    found = {
        file.relative_to(ROOT).as_posix()
        for file in files
        if ".dataframe(" in file.read_text("utf-8")
    }
    assert found == {"gptviz/ui/widgets/tables.py"}


TEXTS = ("=HYPERLINK(1)", "-", "+1", "@a", "'=b", "it's fine", 'a, "b"', "−2")


def test_a_table_keeps_its_numbers_and_its_titles_and_no_text_of_it_is_a_formula() -> None:
    numbers = np.array([-1.5, 1e-300, np.pi, 0, -0.0, 7, 1 / 3, 2])
    frame = pd.DataFrame(
        {"=token": TEXTS, "number": numbers, "whole": range(8), "kind": pd.Categorical([*TEXTS])}
    )
    content = as_csv(frame)
    assert content.startswith(codecs.BOM_UTF8), "without the mark Excel shows other letters"
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    assert header == ["'=token", "number", "whole", "kind"]
    assert [float(row[1]) for row in rows] == numbers.tolist()
    assert [row[2] for row in rows] == [str(i) for i in range(8)]
    for row, text in zip(rows, TEXTS, strict=True):
        assert row[0] == row[3] == (text if text in TEXTS[5:] else f"'{text}")
    assert list(frame.columns) == ["=token", "number", "whole", "kind"]


def test_the_labels_downloaded_are_read_with_the_same_texts() -> None:
    file = File("mine.csv", TEXTS, None, "no labels", "x")
    table = as_csv(predictions(file, np.full((len(TEXTS), 2), 0.5), ("=neg", "pos")))
    assert tuple(texts_of(table, "labels.csv")) == TEXTS
