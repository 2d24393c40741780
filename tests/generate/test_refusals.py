"""What cannot be generated is refused, with what is wrong by its name or number."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice

import pytest
import torch
from torch.nn import functional as F

from gptviz.generate.decoding import beam_search, decode_greedily
from gptviz.generate.generation import Generation
from gptviz.generate.route import Route
from gptviz.generate.sampling import Sampling, choose_tokens
from gptviz.generate.speculation import LookupDrafter, Speculation
from gptviz.generate.tree import ROOT, Tree
from tests.tiny import VOCAB, scrambled, some_ids, tiny

MODEL = scrambled(tiny())
DAMAGED = scrambled(tiny())
torch.nn.init.constant_(DAMAGED.embed.weight, math.nan)
PROMPT = some_ids(3, batch=1)[0]
NOTHING = torch.tensor([], dtype=torch.long)
ANSWERING = scrambled(tiny(n_encoder_layer=1, padding=8))
SOURCES = some_ids(5, 3, vocab=8)


def grown(of: int = 2) -> Generation:
    """A generation that has written so many tokens."""
    generation = Generation(MODEL, PROMPT)
    list(islice(generation, of))
    return generation


def planted() -> Tree:
    return Tree(Generation(MODEL, PROMPT))


def chosen(logit: float, sampling: Sampling) -> object:
    logits = torch.zeros(2, 5)
    logits[1, 3] = logit
    return choose_tokens(logits, sampling, 17)


def route(line: str) -> Route:
    return Route.read_line(line, vocab_size=VOCAB, most=10_000)


def lookup(prompt: torch.Tensor = PROMPT, most: int = 4, *, model: object = MODEL) -> Speculation:
    return Speculation(model, LookupDrafter(VOCAB), prompt, most_drafted=most)  # type: ignore[arg-type]


NO_ROUTE = (
    "",
    "n5",
    "n5_",
    "n5_12345g",
    "x5_123456",
    "n-5_123456",
    "n1.5_123456",
    "n٣_123456",
    "<script>_123456",
)
REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("no token to start from: give a prompt", lambda: Generation(MODEL, NOTHING)),
    ("slide is 0", lambda: Generation(MODEL, PROMPT, slide=0)),
    (
        "slide is 9; it must be a whole number from 1 to 8",
        lambda: Generation(MODEL, PROMPT, slide=9),
    ),
    (
        "start is 2; it must be a whole number from 3 to 5",
        lambda: grown().replace(2, torch.tensor([[1]])),
    ),
    (
        "start is 6; it must be a whole number from 3 to 5",
        lambda: grown().replace(6, torch.tensor([[1]])),
    ),
    ("temperature is -0.1", lambda: Sampling(temperature=-0.1)),
    ("temperature is nan", lambda: Sampling(temperature=math.nan)),
    ("temperature is inf", lambda: Sampling(temperature=math.inf)),
    ("top_k is 0", lambda: Sampling(top_k=0)),
    ("top_p is 0.0", lambda: Sampling(top_p=0.0)),
    ("top_p is 1.1", lambda: Sampling(top_p=1.1)),
    ("top_p is nan", lambda: Sampling(top_p=math.nan)),
    *(
        (
            "logits at position 17 are not numbers",
            lambda logit=logit, sampling=sampling: chosen(logit, sampling),
        )
        for logit in (math.nan, math.inf)
        for sampling in (Sampling(), Sampling(temperature=0), Sampling(top_k=2))
    ),
    *(("not have the form of a route", lambda line=line: route(line)) for line in NO_ROUTE),
    *(
        ("more than 10,000", lambda line=line: route(line))
        for line in ("n999999999_123456", "n9999f1f1_123456")
    ),
    ("not in the vocabulary", lambda: route(f"f{VOCAB}_123456")),
    ("top_p is 1.5", lambda: route("p1.5n1_123456")),
    (
        "another prompt",
        lambda: planted().restore(Tree(Generation(MODEL, some_ids(4, batch=1)[0])).snapshot()),
    ),
    ("has already drawn tokens", lambda: Tree(grown(1))),
    ("the token is -1; it must be a whole number from 0 to 10", lambda: planted().take(-1)),
    ("the token is 11; it must be a whole number from 0 to 10", lambda: planted().take(VOCAB)),
    ("not chosen from anything", lambda: planted().chosen_from(ROOT)),
    ("99", lambda: planted().go(99)),
    ("no token", lambda: lookup(NOTHING)),
    ("it must be a whole number from 1 to", lambda: lookup(most=0)),
    ("looks ahead", lambda: lookup(model=scrambled(tiny(mask="full")))),
    ("n is 0", lambda: LookupDrafter(VOCAB, 0)),
    ("overflow", lambda: lookup(model=DAMAGED).round()),
    *(
        (
            f"answer of {most} tokens was allowed; the model writes from 1 to 8",
            lambda write=write, most=most: write(most),
        )
        for most in (0, -1, 9)
        for write in (
            lambda most: decode_greedily(ANSWERING, SOURCES, 9, 10, most),
            lambda most: beam_search(ANSWERING, SOURCES[0], 9, 10, 2, most),
        )
    ),
    ("width of the beam is 0", lambda: beam_search(ANSWERING, SOURCES[0], 9, 10, 0)),
    (
        "9 tokens do not fit in a context of 8",
        lambda: decode_greedily(ANSWERING, F.pad(SOURCES, (0, 4), value=8), 9, 10),
    ),
    ("no encoder", lambda: decode_greedily(MODEL, SOURCES, 9, 10)),
]


@pytest.mark.parametrize(("said", "asked"), REFUSED, ids=[said for said, _ in REFUSED])
def test_what_cannot_be_generated_is_refused(said: str, asked: Callable[[], object]) -> None:
    with pytest.raises((ValueError, KeyError), match=said):
        asked()
