"""The report of a run: it has what log and card in the folder have, and shows none of it as
markup.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from gptviz.__main__ import main
from gptviz.machine.location import FOLDER
from gptviz.runs import checkpoints
from gptviz.takehome import report as report_file
from gptviz.takehome.page import Code, Figure, PageTable
from gptviz.takehome.page_file import as_html
from gptviz.takehome.report import pick_evenly, report
from tests.browser.machinery import HOSTILE
from tests.command_line import Capture, answered

SHIPPED = checkpoints.find("ladder-8")


def lines(kind: str) -> list[dict]:
    read = [json.loads(line) for line in (SHIPPED / "log.jsonl").read_text().splitlines()]
    return [line for line in read if line["kind"] == kind]


def numbers(values: list | dict) -> list[float]:
    """The numbers of a line of plotly, which writes arrays as base64."""
    return (
        values
        if isinstance(values, list)
        else np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    )


def test_it_has_the_losses_the_settings_the_samples_and_the_card_of_the_folder():
    content = report("ladder-8")
    drawn = [numbers(line["y"]) for line in json.loads(content.pieces_of(Figure)[0].spec)["data"]]
    assert [line["loss"] for line in lines("evaluation")] in drawn
    card = json.loads((SHIPPED / "card.json").read_text())
    recipe, config = (table.frame for table in content.pieces_of(PageTable))
    assert recipe.loc["Learning rate", "value"] == f"{card['recipe']['learning_rate']:g}"
    assert recipe.loc["Steps", "value"] == f"{card['recipe']['steps']:,}"
    kept = json.loads((SHIPPED / "config.json").read_text())["config"]
    assert config.loc["Blocks", "value"] == str(kept["n_layer"])
    codes = content.pieces_of(Code)
    assert [one.body for one in codes if not one.language] == [
        line["text"] for line in lines("sample")
    ]
    assert json.loads(codes[-1].body) == card


def test_the_file_loads_nothing(tmp_path: Path, capsys: Capture):
    out = tmp_path / "report.html"
    said = answered(capsys, "report", "ladder-2", "--out", out)
    assert said == {"name": "ladder-2", "path": str(out), "bytes": out.stat().st_size}
    content = out.read_text(encoding="utf-8")
    assert "default-src 'none'" in content
    assert not re.findall(
        r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?!data:)[^"'> ]""", content
    )
    assert main(["report", "no-such-model", "--out", str(tmp_path / "x.html")]) == 2
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_card_or_a_log_says_stays_text(home: Path, hostile: str):
    folder = home / "checkpoints" / "own"
    shutil.copytree(SHIPPED, folder)
    card = json.loads((folder / "card.json").read_text()) | {
        "corpus": hostile,
        "command": hostile,
        "device": hostile,
    }
    (folder / "card.json").write_text(json.dumps(card))
    with (folder / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "sample", "step": 10_001, "text": hostile}) + "\n")
    content = as_html(report("own"))
    shown = re.sub(r"<script>.*?</script>", "", content, flags=re.DOTALL)  # plotly
    assert shown.count("<img") == shown.count('href="javascript') == 0
    assert "title='pwned'</script>" not in shown
    assert hostile[:20] in unescape(shown)


def test_samples_that_are_left_out_are_counted(monkeypatch: pytest.MonkeyPatch):
    written = len(lines("sample"))
    assert f"of {written} samples" not in as_html(report("ladder-8"))
    monkeypatch.setattr(report_file, "MOST_SAMPLES", 2)
    content = report("ladder-8")
    assert f"2 of {written} samples." in as_html(content)
    assert len([one for one in content.pieces_of(Code) if not one.language]) == 2


def test_of_many_samples_the_first_and_the_last_are_kept():
    many = [(step, str(step)) for step in range(100)]
    few = pick_evenly(many, 24)
    assert (few[0], few[-1], len(set(few))) == (many[0], many[-1], 24)
    assert pick_evenly(many[:5], 24) == many[:5]


@pytest.mark.full
def test_every_shipped_model_has_a_report():
    for folder in sorted((FOLDER / "checkpoints").iterdir()):
        if (folder / "card.json").is_file():
            assert report(folder.name).title == f"How {folder.name} was trained"
