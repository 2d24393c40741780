"""Addresses that an earlier version of gptviz wrote still open what they name: with a link goes a
course, a mail, a paper.

They were collected from the version of 23 November 2026: from its lessons, suggestions and
pictures, and from the controls and views of all its pages. Whoever changes a key or the name of a
value lets the old one go on working.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import pytest

from gptviz.machine.location import page_names
from gptviz.settings.address_values import Values
from gptviz.streamlit_internals import run_page
from gptviz.ui.widgets import addresses, controls
from tests.test_streamlit_internals import within
from tests.waiting import PATIENCE

MARY = "When Mary and John went to the shop, John gave a book to"

# One for each page, with as many of its keys as go together.
FIRST = (
    "tokens?model=bpe&prompt=O+Romeo,+Romeo&view=Two+tokenizers",
    "over_training?model=induction&measures=loss,heads.induction&show=A+panel+each&log_steps=false",
    "home?model=generator&prompt=O+Romeo&step=0&box=blocks.2.attention.z&block=2&tensor=0&head=1",
    "lessons?model=ladder-0",
    "next_token?model=shakespeare&prompt=MENENIUS:%0AWhat+is+gra&position=9&temperature=0.7&top_k=20&top_p=0.9&seed=3"
    "&tokens=All,+by+vocabulary&log=true",
    "generate?model=ladder-2&prompt=HAMLET:&temperature=0.3&top_k=5&top_p=0.5&seed=7&speed=Fast&attended=0.0",
    "classify?model=classifier&prompt=The+film+is+warm,+funny+and+moving&view=Words",
    "translate?model=seq2seq&prompt=the+third+of+march+1977&view=Next+token&drawn=false",
    "embeddings?model=generator&space=unembedding&method=PCA&dimensions=3-D&token=g",
    "positions?model=generator&beside=sinusoidal&table=sinusoidal&wave=8",
    "attention?model=shakespeare&prompt=O+Romeo,+Romeo&block=1&head=4&heads=1.4+0.0&show=value&direction=in&query=5&key=2&sort=first"
    "&least=100&log=true",
    "gradients?model=shakespeare&depth=12&std=0.04&width=32&activation=gelu&shrink=true&seed=3&scale=All+decades"
    "&beside=Gradient+of+the+weights",
    "lens?model=shakespeare&prompt=O+Romeo&layer=blocks.2.attention&position=3&colour=entropy&words=false&rows=every+sublayer",
    f"attribution?model=sentences&prompt={MARY}&position=12&logit_of=Mary&minus=John&part=blocks.0.mlp",
    "stream?model=shakespeare&prompt=O+Romeo,+Romeo&view=Map&layer=blocks.0.mlp&position=3",
    "heads?model=induction&step=128&score=Induction&over=The+prompt&unit=blocks.1.attention.head.0",
    "neurons?model=shakespeare&prompt=O+Romeo&text=The+prompt&block=2&by=Active&unit=blocks.2.mlp.neuron.7",
    f"switch_off?model=sentences&prompt={MARY}&edits=blocks.1.attention.head.2,blocks.0.mlp=mean&edit_text=O+Romeo&by=mean"
    "&over=the+prompt&temperature=0.5&top_k=4&top_p=0.9&seed=2",
    f"patching?model=sentences&prompt={MARY}&corrupted=When+Mary+and+John+went+to+the+shop,+Mary+gave+a+book+to&right=Mary&wrong=John"
    "&cell=attention.z/0/1&of=Pattern",
    "circuit?model=ladder-4&prompt=O+Romeo&position=4&token=e&against=o&share=0.5&beyond_mean=true&check=true",
    "context?model=ladder-4&prompt=O+Romeo&how=removed",
    "compare?model=ladder-4&prompt=O+Romeo&b_model=ladder-2&b_prompt=O+Juliet&b_edits=blocks.0.mlp&compared=Next+token",
    "costs?model=shakespeare&batch=16&tokens=8&pass=A+step+of+training&optimiser=muon",
    "open_model?source=someone/tiny",
    "train?model=induction&plan=ladder-3&run=generator&run_n_layer=2&run_residual=parallel&run_tied=true&run_learning_rate=0.002"
    "&run_optimiser=muon&run_precision=float32&chart=Perplexity&beside=ladder-8&log_steps=true&log_loss=true",
    "runs?model=ladder-8&chosen=ladder-3,ladder-8&log_steps=true&log_loss=true&training=true&below=The+experiments",
)
MORE = (
    f"home?model=sentences&prompt={MARY}&block=0&box=logits&head=1&precision=bfloat16",
    "lessons?lesson=06-positions&lesson_step=2&lesson_done=1.1r-1.2w&present=1",
    "next_token?model=generator&step=0&prompt=ROMEO:&lesson=09-training-watched&lesson_step=3",
    f"next_token?model=bpe&prompt={MARY}&whole=true&position=-1",
    "generate?model=generator&prompt=LYSANDER.%0AHow+now,+my+l&step=last&tree=q0aVb1Wn3Xk7bF1c",
    "classify?model=classifier&prompt=not+a+wonderful+film&view=Attention&block=0&head=0",
    "classify?model=classifier&view=Held-out+texts",
    "translate?model=seq2seq&prompt=yesterday&view=Cross-attention&drawn=true&block=1&head=2&show=value",
    "translate?model=seq2seq&prompt=yesterday&view=Beam+search",
    "embeddings?model=generator&method=t-SNE&token=g",
    "positions?model=ladder-8&beside=rotary",
    "attention?model=seq2seq&prompt=may+1977&stack=encoder&heads=all&sort=spread",
    "attention?model=generator-unmasked&prompt=Why+is+your+cheek+so+pale&heads=mean&show=rollout",
    "lens?model=seq2seq&prompt=may+1977&colour=rank",
    "attribution?model=bpe&prompt=the+return+of+the+king&minus=none:+its+logit+alone",
    "stream?model=generator&prompt=O+Romeo,+Romeo&view=What+is+written&position=all",
    "stream?model=generator&prompt=O+Romeo&view=Directions",
    "heads?model=bpe&view=Which+head+reads+which",
    "neurons?model=shakespeare&text=What+it+writes&block=0&by=Effect",
    "switch_off?model=reversal&over=held-out+data&edits=blocks.0.mlp.neuron.3=2",
    "circuit?model=sentences&share=0.5&node=logit@13",
    "compare?model=generator&prompt=O+Romeo&b_step=0&compared=Attention",
    "compare?model=sentences&b_edits=blocks.1.attention.head.2&compared=Heads",
    "train?run=induction&log_steps=true",
    "runs?chosen=-",
)


@pytest.mark.parametrize(
    "address",
    [*FIRST, *(pytest.param(one, marks=pytest.mark.full) for one in MORE)],
    ids=lambda one: one.partition("?")[0],
)
def test_an_address_of_an_earlier_version_opens_what_it_names(
    address: str, written: dict[str, set[str]]
) -> None:
    page, _, query = address.partition("?")
    ran = run_page(page, dict(parse_qsl(query)), PATIENCE)
    assert (ran.failed, ran.rejected) == ([], {})
    by_streamlit = {
        getattr(one.message, "query_param_key", "")
        for element in ran.shown
        for one in within(element)
    } - {""}
    twice = (
        by_streamlit & (written["server"] | written["browser"])
        | written["server"] & written["browser"]
    )
    # A link to another page brings its model; an address that names what one view alone has is
    # given this view.
    assert not twice - {"model", "view"}, "a key of the address has two writers"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The keys of the address that the page lets the server write, and those that it leaves to
    views in the browser.
    """
    keys: dict[str, set[str]] = {"server": set(), "browser": set()}
    write = addresses.write
    linked = controls.linked_choice
    takes_all = addresses.takes_all

    def server_writes(key: str, value: str | None) -> None:
        keys["server"].add(key)
        write(key, value)

    def server_reads(key: str, *args: Any, **named: Any) -> Any:
        keys["server"].add(key)
        return linked(key, *args, **named)

    def browser_writes(values: Mapping[str, Values]) -> None:
        keys["browser"] |= values.keys()
        takes_all(values)

    monkeypatch.setattr(addresses, "write", server_writes)
    monkeypatch.setattr(controls, "linked_choice", server_reads)
    monkeypatch.setattr(addresses, "takes_all", browser_writes)
    return keys


def test_there_is_an_address_for_every_page_of_the_first_version() -> None:
    since = {"features"}
    assert {one.partition("?")[0] for one in FIRST} == set(page_names()) - since
