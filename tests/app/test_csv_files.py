"""The CSV files of the pages: Excel shows their letters, numbers are numbers, texts are never formulas, and all come back."""

from __future__ import annotations

import codecs
import csv
import io

import numpy as np
import pandas as pd

from gptviz.text import texts_of
from gptviz.ui.pages.classify.own_file import File, predictions
from gptviz.ui.widgets.details import as_csv

TEXTS = ("=HYPERLINK(1)", "-", "+1", "@a", "'=b", "it's fine", 'a, "b"', "−2")


def test_a_table_keeps_its_numbers_and_its_titles_and_no_text_of_it_is_a_formula() -> None:
    numbers = np.array([-1.5, 1e-300, np.pi, 0, -0.0, 7, 1 / 3, 2])
    frame = pd.DataFrame({"=token": TEXTS, "number": numbers, "whole": range(8), "kind": pd.Categorical([*TEXTS])})
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
