"""The command `generate`: go on with a text, or answer it."""

from __future__ import annotations

import math
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from gptviz.settings.fields import described

from .common import UsageError, open_model, pick_values, warn_of_unknown
from .options import Name, Precision, command
from .printing import print_json

if TYPE_CHECKING:
    from gptviz.generate.sampling import Sampling
    from gptviz.language_model import LanguageModel
    from gptviz.text import Encoding

MOST_BEAMS = 64  # every step of a beam search takes memory and time for each


@command(90)
def generate(
    name: Name,
    /,
    *,
    precision: Precision = "stored",
    prompt: str,
    max_new_tokens: int = 200,
    go_on: bool = False,
    greedy: bool = False,
    temperature: Annotated[float, described("T")] | None = None,
    top_k: Annotated[int, described("K")] | None = None,
    top_p: Annotated[float, described("P")] | None = None,
    seed: Annotated[int, described("S")] = 0,
    draft: Annotated[str, described("NAME|prompt")] | None = None,
    drafted: Annotated[int, described("K")] | None = None,
    beams: int | None = None,
    options: Namespace,
) -> None:
    """Continue a prompt; with an encoder–decoder, answer it.

    Args:
        go_on: write on where the model ends its text, or its task.
        greedy: always the likeliest token; the same as --temperature 0.
        temperature: below 1 likely tokens become likelier, above 1 all become more alike; default
            1, for an encoder–decoder 0 (always the likeliest token).
        top_k: draw from the K likeliest tokens.
        top_p: draw from the fewest tokens whose probabilities add up to P.
        seed: decides the random numbers: the same seed writes the same text; default 0.
        draft: speculative decoding: the model NAME, of the same vocabulary, drafts tokens, or the
            text's own continuation does (prompt), and this model accepts or refuses them; says how
            many, and with --json also each with its numbers.
        drafted: with --draft: how many tokens are drafted at a time; default 4.
        beams: an encoder–decoder's answers, found by a beam search of width N.
    """
    from gptviz.generate.generation import until_drawn, without_end
    from gptviz.generate.sampling import Sampling
    from gptviz.settings.fields import check_value, info_of
    from gptviz.settings.kinds import Length

    # what is asked for
    check_value(info_of(Length), "--max-new-tokens", max_new_tokens)
    if beams is not None and beams > MOST_BEAMS:
        raise UsageError(f"--beams is {beams:,}; it must be at most {MOST_BEAMS}")
    is_drawn = any(given is not None for given in (temperature, top_k, top_p))
    if greedy:
        temperature = 0.0
    elif temperature is None:
        temperature = 1.0
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    if drafted is not None and draft is None:
        raise UsageError(
            "--drafted is how many tokens a drafter drafts: name one with --draft NAME, or "
            "--draft prompt"
        )

    # what this model can do
    lm = open_model(options)
    if lm.model.config.kind == "classifier":
        raise UsageError(
            f"{name} is a classifier and writes no text: use classify {name} --text TEXT"
        )
    encoding = lm.tokenizer.encode(prompt)
    warn_of_unknown(encoding)
    if lm.model.config.kind == "encoder-decoder":
        if draft is not None:
            raise UsageError(f"{name} answers a text and does not continue it: leave --draft out")
        _answer(options, lm, sampling if is_drawn and temperature else None)
        return
    if beams is not None:
        raise UsageError(
            f"{name} continues a text, which has no end: a beam search is for answers, so "
            "leave --beams out"
        )
    if draft is not None:
        _speculate(options, lm, encoding, sampling)
        return

    # a continuation, token by token
    from gptviz.language_model.core import end_tokens
    from gptviz.language_model.writing import to_write

    grown = lm.generation(prompt, sampling)
    if not options.json:
        print(prompt, end="")
    streams = not options.json and lm.tokenizer.kind in ("characters", "symbols")
    tokens: list[int] = []
    begun = time.perf_counter()
    ends, left = (
        (frozenset(), sys.maxsize)
        if go_on
        else (end_tokens(lm), to_write(lm, grown.prompt_length, sys.maxsize))
    )
    for step in until_drawn(islice(grown, min(left, max_new_tokens)), ends):
        tokens.append(int(step.tokens[0]))
        if streams and tokens[-1] not in ends:
            print(lm.tokenizer.piece(tokens[-1]), end="", flush=True)

    # what was written
    rate = len(tokens) / max(time.perf_counter() - begun, 1e-9)
    written, ended = without_end(tokens, ends)
    is_whole = not ended and len(tokens) == left
    text = lm.tokenizer.continuation(written)
    if options.json:
        print_json(
            {
                "text": text,
                "tokens": written,
                "ended": ended or is_whole,
                "tokens_per_second": round(rate, 1),
            }
        )
    else:
        # Tokens of a byte-level vocabulary can end within a character, so their text is printed
        # when it is complete.
        print("" if streams else text)
        _say_end(lm, tokens, ended, is_whole)


def _say_end(lm: LanguageModel, tokens: Sequence[int], ended: bool, is_whole: bool) -> None:
    """Say on stderr where the text ends by itself."""
    if ended or is_whole:
        if ended:
            how = f"the model ended its text with {lm.tokenizer.label(tokens[-1])}"
        else:
            how = "a sequence of its task ends here"
        print(f"gptviz: {how}; with --go-on it writes on", file=sys.stderr)


def _speculate(
    options: Namespace, lm: LanguageModel, encoding: Encoding, sampling: Sampling
) -> None:
    """A text with a drafter: the text, then how much of what was drafted was accepted, and the
    tokens per pass.
    """
    from gptviz.generate.generation import without_end
    from gptviz.generate.speculation import DRAFTED, Speculated
    from gptviz.language_model.core import ids_of
    from gptviz.language_model.writing import speculation, to_write

    drafter: Any = "prompt" if options.draft == "prompt" else open_model(options, options.draft)
    drafted = DRAFTED if options.drafted is None else options.drafted
    ids = ids_of(lm, encoding)
    grown = speculation(lm, ids, drafter, sampling, drafted=drafted, go_on=options.go_on)
    if options.go_on:
        left = sys.maxsize
    else:
        left = to_write(lm, len(ids), sys.maxsize)
    begun = time.perf_counter()
    speculated = Speculated(tuple(grown.rounds(min(left, options.max_new_tokens))))
    rate = len(speculated.tokens) / max(time.perf_counter() - begun, 1e-9)
    written, ended = without_end(speculated.tokens, grown.ends)
    is_whole = not ended and len(written) == left
    text = lm.tokenizer.continuation(written)
    if not options.json:
        print(f"{options.prompt}{text}")
        _say_end(lm, speculated.tokens, ended, is_whole)
        print(f"gptviz: {speculated.sentence(options.draft, options.name)}", file=sys.stderr)
        return
    rounds = [
        {
            "drafted": [
                asdict(draft) | {"text": lm.tokenizer.label(draft.token)} for draft in each.drafted
            ]
        }
        | pick_values(each, "position", "token", "probability", "number")
        for each in speculated.rounds
    ]
    told = {
        "text": text,
        "tokens": written,
        "ended": ended or is_whole,
        "tokens_per_second": round(rate, 1),
    }
    print_json(
        told | pick_values(speculated, "acceptance_rate", "tokens_per_pass") | {"rounds": rounds}
    )


def _answer(options: Namespace, lm: LanguageModel, sampling: Sampling | None) -> None:
    """The answer of an encoder–decoder, drawn or greedy, or those of a beam search with their
    probabilities.
    """
    if options.beams is not None and sampling is not None:
        raise UsageError(
            "--beams searches for the likeliest answers: leave --temperature, --top-k and --top-p "
            "out"
        )
    longest = min(options.max_new_tokens, lm.model.config.context_length)
    begun = time.perf_counter()
    if options.beams is None:
        from gptviz.language_model.core import decode_answer

        tokens, ended = decode_answer(lm, options.prompt, longest, sampling)
        answer: dict[str, Any] = {
            "text": lm.tokenizer.decode(tokens),
            "tokens": tokens,
            "ended": ended,
        }
        lines = [answer["text"]]
    else:
        beams = lm.beams(options.prompt, options.beams, longest).finished
        rows = [
            {
                "text": lm.tokenizer.decode(beam.ids),
                "log_probability": beam.total,
                "ended": beam.ended,
            }
            for beam in beams
        ]
        answer = rows[0] | {"tokens": list(beams[0].ids), "beams": rows}
        lines = [
            f"{math.exp(beam.total):>7.2%}  {row['text']}"
            for beam, row in zip(beams, rows, strict=True)
        ]
    rate = len(answer["tokens"]) / max(time.perf_counter() - begun, 1e-9)
    if options.json:
        print_json(answer | {"tokens_per_second": round(rate, 1)})
        return
    print("\n".join(lines))
    if not answer["ended"]:
        print(f"gptviz: the answer has no end: it was cut after {longest} tokens", file=sys.stderr)
