"""What stands out: what is known of two models is found, nothing of random weights, and each number
is that of its page.
"""

from __future__ import annotations

import re

import pytest
import torch

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.units.head_scores import SCORES
from gptviz.language_model.scanning import Finding, rival
from gptviz.ui.menu import PAGES
from tests.command_line import Capture, answered, error
from tests.tiny import TinyModel

MARY = "When Mary and John went to the shop, John gave a book to"


def of(findings: tuple[Finding, ...], page: str) -> list[Finding]:
    return [one for one in findings if one.page == page]


def test_the_induction_head_is_named() -> None:
    lm = gptviz.load("induction")
    findings = lm.scan(lm.tokenizer.decode(lm.rows(most=64)[0].tolist()))
    score = SCORES["induction"].title
    (found,) = (one for one in of(findings, "heads") if dict(one.query)["score"] == score)
    rows = lm.heads()
    best = max(rows, key=lambda row: row["induction"])
    assert (dict(found.query)["unit"], found.value) == (
        best["name"],
        pytest.approx(best["induction"], abs=1e-6),
    )
    assert found.value > 0.9 > 0.3 > found.usual


def test_the_two_heads_that_pass_on_the_name_are_named_and_every_number_is_that_of_its_page() -> (
    None
):
    lm = gptviz.load("sentences")
    findings = lm.scan(MARY)
    added = {part.name: part.value for part in lm.attribute(MARY, "Mary", against="John").parts}
    named = [dict(one.query)["part"] for one in of(findings, "attribution")]
    heads = {name: value for name, value in added.items() if ".head." in name}
    assert (
        named
        == sorted(heads, key=heads.__getitem__, reverse=True)[:2]
        == [f"blocks.1.attention.head.{i}" for i in (2, 3)]
    )
    assert [one.value for one in of(findings, "attribution")] == pytest.approx(
        [added[name] for name in named], abs=1e-4
    )
    (needed,) = of(findings, "switch_off")
    without = (
        lm.edited(dict(needed.query)["edits"]).trace(MARY, ["logits"])["logits"][0, -1].softmax(-1)
    )
    assert needed.value == pytest.approx(float(without[lm.token("Mary")]), abs=1e-5)
    (decided,) = of(findings, "lens")
    lens = lm.lens(MARY)
    row = [layer.name for layer in lens.layers].index(dict(decided.query)["layer"])
    assert lens.top[row, -1, 0] == lm.token("Mary")
    assert decided.value == pytest.approx(float(lens.probability[row, -1, 0]), abs=1e-5)
    strengths = [one.strength for one in findings]
    assert strengths == sorted(strengths, reverse=True)
    assert all(one.page in PAGES for one in findings)


def test_of_random_weights_nothing_stands_out(tiny_model: TinyModel) -> None:
    tiny_model("random", n_layer=2, n_head=4)
    lm = gptviz.load("random")
    with torch.no_grad():
        for parameter in lm.model.parameters():
            parameter.copy_(
                torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)) * 0.02
            )
    assert lm.scan("the fox") == ()


def test_the_command_gives_the_same_and_refuses_a_classifier(capsys: Capture) -> None:
    rows = answered(capsys, "scan", "sentences", "--prompt", MARY)
    assert [row["sentence"] for row in rows] == [
        one.sentence for one in gptviz.load("sentences").scan(MARY)
    ]
    assert rows[0]["query"]
    assert "only a decoder is scanned" in error(capsys, "scan", "classifier", "--prompt", "good")


def test_shares_are_written_as_pages_write_them() -> None:
    lm = gptviz.load("sentences")
    findings = lm.scan("Tom bought a white car. Now the car is")
    sentences = " ".join(one.sentence for one in findings)
    shares = re.findall(r"(?<!< )(?<![\d.])[\d.]+ %", sentences)
    assert "95.0 %" in shares
    assert all(share == percent(float(share.removesuffix(" %")) / 100) for share in shares)


def test_a_name_of_the_task_has_its_rival() -> None:
    lm = gptviz.load("sentences")
    prompt = "When Mark and Kate went to the shop , Kate gave a book to"
    assert rival(lm, prompt, lm.token("Mark")) == lm.token("Kate")
