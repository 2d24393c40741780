"""Pages to take home: what stands in the file is what the page shows, and nothing in it asks
another machine.
"""

from __future__ import annotations

import base64
import io
import json
import re
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

import gptviz
from gptviz.__main__ import main
from gptviz.components import kit
from gptviz.interp.trace import run
from gptviz.takehome import page_file
from gptviz.takehome.page import (
    AskedQuestion,
    Code,
    ControlValue,
    Figure,
    Heading,
    MarkdownText,
    PageContent,
    PageError,
    PageTable,
    PieceGroup,
    PlainText,
    SavedView,
    read_page,
)
from gptviz.takehome.page_file import as_html
from tests.browser.machinery import HOSTILE
from tests.command_line import Capture, answered, error

PROMPT = "O Romeo, Romeo"


@pytest.fixture(scope="module")
def attention() -> PageContent:
    return read_page(
        "attention", {"model": "ladder-8", "prompt": PROMPT, "block": "1", "head": "0"}
    )


def test_a_page_is_read_with_its_title_its_settings_and_its_views(attention: PageContent) -> None:
    assert attention.title == "What does each head look at?"
    assert {"Model": "ladder-8", "Prompt": PROMPT}.items() <= {
        one.label: one.value for one in attention.pieces_of(ControlValue)
    }.items()
    (view,) = attention.pieces_of(SavedView)
    header, _ = kit.unpack(view.data)
    assert view.name == "attention_explorer"
    assert header["n_block"] == gptviz.load("ladder-8").model.config.n_layer


def test_a_link_to_another_page_is_no_setting() -> None:
    page = read_page("patching", {"model": "sentences"})
    assert not [one for one in page.pieces_of(ControlValue) if one.label == one.value]
    assert [
        one
        for one in page.pieces_of(MarkdownText)
        if re.fullmatch(r"Head \d of block \d: .*", one.body)
    ]


def test_the_file_has_the_data_of_every_view_and_loads_nothing(attention: PageContent) -> None:
    content = as_html(attention)
    assert "Content-Security-Policy" in content
    assert not re.findall(
        r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?!data:)[^"'> ]""", content
    )
    assert not re.findall(r"@import|url\((?!data:)", content.split("</style>")[0])
    assert (
        'data-address="model=ladder-8&amp;prompt=O+Romeo%2C+Romeo&amp;block=1&amp;head=0"'
        in content
    )


def test_of_a_long_table_the_first_rows_are_in_the_file_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_file, "MOST_ROWS", 3)
    pieces = [PageTable(pd.DataFrame({"letter": list("abcdefgh")[:rows]})) for rows in (8, 3)]
    long, short = (as_html(PageContent("x", {}, (piece,))) for piece in pieces)
    assert "5 more rows are not in this file." in long
    assert "more rows" not in short
    for content in (long, short):
        assert re.findall(r"<td>(\w)</td>", content) == ["a", "b", "c"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text(hostile: str) -> None:
    pieces = (
        Heading(hostile, 1),
        MarkdownText(hostile),
        PlainText(hostile),
        Code(hostile, "python"),
        ControlValue(hostile, hostile),
        Figure(json.dumps({"data": [], "layout": {"title": hostile}}), hostile),
        PieceGroup((PlainText(hostile),), "folded", hostile),
        AskedQuestion(
            "step-1-question-1",
            hostile,
            "choice",
            (hostile, "b"),
            (hostile, "b"),
            hostile,
            0.0,
            hostile,
            hostile,
            hostile,
        ),
    )
    content = as_html(PageContent("x", {"prompt": hostile}, pieces))
    shown = re.sub(r"<script>.*?</script>", "", content, flags=re.DOTALL)  # plotly
    assert "<img src=x" not in shown
    # The data of the figure, what draws it, and what checks the answer.
    assert shown.count("<script") == shown.count("</script>") == 3
    (packed,) = re.findall(r'data-answer="([^"]+)"', shown)
    answer = json.loads(base64.b64decode(packed))
    assert "<img src=x" not in answer["hint"] + answer["reveal"]
    assert 'href="javascript' not in shown
    assert hostile[:20] in unescape(content)


def test_every_page_has_a_file(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "page.html"
    said = answered(capsys, "export", "positions", "--model", "ladder-2", "--out", out)
    assert said == {
        "page": "positions",
        "format": "html",
        "path": str(out),
        "bytes": out.stat().st_size,
    }
    assert "newPlot" in out.read_text(encoding="utf-8")
    assert "there is no page 'missing'" in error(
        capsys, "export", "missing", "--model", "ladder-2", "--out", tmp_path / "x.html"
    )
    assert main(["export", "attention", "--model", "ladder-2", "--format", "nanogpt"]) == 2
    assert not (tmp_path / "x.html").exists()
    for place, said in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "x.html", "there is no folder"),
    ):
        assert said in error(capsys, "export", "positions", "--model", "ladder-2", "--out", place)
    assert "positions is a page: name the model" in error(capsys, "export", "positions")


def test_what_the_address_says_may_come_by_the_standard_input(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    said = {"model": "ladder-0", "prompt": "a=b --out\n" + "x" * 30}
    command = ["export", "costs", "--state", "-", "--out", str(out)]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(said)))
    assert main(command) == 0
    assert escape(urlencode(said)) in out.read_text(encoding="utf-8")
    for broken in ("", "[1]", '{"block": 1}', "[" * 100_000):
        monkeypatch.setattr("sys.stdin", io.StringIO(broken))
        assert main(command) == 2
        assert "--state -: the standard input" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("blok=1", "takes no 'blok' here: did you mean 'block'? There are block,"),
        ("block=99", "has no block = '99'; it takes a whole number from 0 to "),
        ("step=999999", "has no step = '999999'; there are 0, 128, 6000,"),
        ("sort=previou", "did you mean 'previous'"),
        ("edits=blocks.9.mlp", "blocks.9.mlp"),
        ("block", "--state block names no value"),
    ],
)
def test_a_rejected_value_of_a_state_is_an_error_that_names_it(
    state: str, said: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "page.html"
    assert (
        main(["export", "attention", "--model", "reversal", "--state", state, "--out", str(out)])
        == 2
    )
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_a_notebook_refuses_what_a_page_does_not_take() -> None:
    with pytest.raises(ValueError, match="has no step = '999999'"):
        gptviz.show("reversal", page="attention", step=999_999)
    with pytest.raises(ValueError, match="did you mean 'block'"):
        gptviz.show("reversal", blok=1)


def test_a_page_that_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PageError, match="there is no page '../app'"):
        read_page("../app", {})


def test_a_notebook_shows_a_model_with_its_edits() -> None:
    lm = gptviz.load("ladder-8").edited("blocks.0.attention.head.0")
    shown = gptviz.show(lm, PROMPT, "attention")
    html = shown._repr_html_()
    assert html.startswith("<iframe sandbox=")
    assert "allow-same-origin" not in html
    (view,) = shown.page.pieces_of(SavedView)
    (plain,) = gptviz.show("ladder-8", PROMPT).page.pieces_of(SavedView)
    edited = kit.unpack(view.data)[1]
    before = kit.unpack(plain.data)[1]
    assert any(not np.array_equal(edited[name], before[name]) for name in edited)


def test_what_no_page_can_show_is_refused_by_name() -> None:
    lm = gptviz.load("ladder-8")
    trace = lm.trace(PROMPT, ["logits"])
    refused = {
        "has its text already": lambda: gptviz.show(trace, "lens"),
        "knows no model": lambda: gptviz.show(run(lm.model, lm.encode(PROMPT)[None], ["logits"])),
        "values replaced": lambda: gptviz.show(
            lm.trace(PROMPT, ["logits"], edits={"embed": lambda value: 2 * value})
        ),
        "no model named 'nobody'": lambda: gptviz.show("nobody", PROMPT),
    }
    for said, shown in refused.items():
        with pytest.raises(ValueError, match=said):
            shown()


def test_what_a_page_computes_beside_its_run_is_in_its_file() -> None:
    page = read_page("circuit", {"model": "quotes", "view": "Weights of a task"})
    assert page.pieces_of(Figure)
    assert [
        one
        for one in page.pieces_of(MarkdownText)
        if "answer the questions about quotes" in one.body
    ]
