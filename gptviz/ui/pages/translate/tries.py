"""The suggestions for an encoder–decoder and a source."""

from __future__ import annotations

import numpy as np

from gptviz.interp.reading import cross_attention
from gptviz.ui.records.translate import BEAM_SEARCH, CROSS_ATTENTION, NEXT_TOKEN
from gptviz.ui.views import attention
from gptviz.ui.views.encoder_decoder import longest_answer
from gptviz.ui.widgets import Try
from gptviz.ui.widgets.sampling import PLAIN

from .translation import Translation, answer_of, output_of, special_tokens_of

# The entry in the card of a model that was trained on dates, and a date to try on it.
IN_WORDS = "july twenty-sixth, twelve ninety-five"


def tries(translation: Translation) -> list[Try]:
    """The suggestions for this source and this output."""
    config = translation.subject.lm.model.config
    hidden = cross_attention.hidden_by_mean(translation.computed.cross, None)
    b, h = hidden.sharpest
    offers: list[Try] = [
        Try(
            "The sharpest head",
            f"Block {b}, head {h} spreads its attention least, over {hidden.sharpest_spread:.1f} source tokens. Go through the "
            "output token by token: which part of the source does the head follow?",
            {"view": CROSS_ATTENTION, "output": "", **attention.explorer_state(heads="one", block=b, head=h)},
        ),
    ]
    if config.n_head > 1:
        about = (
            "Each head of the last block has a colour of its own: do the heads share the work, or do they all read the same "
            "tokens?"
        )
        state = {"view": CROSS_ATTENTION, **attention.explorer_state(heads="all", block=config.n_layer - 1)}
        offers.append(Try("Every head", about, state))
    about = (
        "Each token is drawn at temperature 2, which makes unlikely tokens more likely. Does the output change? It can change "
        "only where the model is not sure. Try other seeds."
    )
    offers.append(Try("Draw it", about, PLAIN | {"drawn": True, "temperature": 2.0, "view": NEXT_TOKEN, "output": ""}))
    if (wrong := _one_wrong(translation)) is not None:
        output, place = wrong
        about = "The output with one token that the model would not have written: how sure was it there, and how does it go on?"
        offers.append(Try("One wrong token", about, {"view": NEXT_TOKEN, "output": output, "position": place}))
    if (translation.subject.lm.card.source or {}).get("pair_task") == "dates":
        about = (
            "In the source the year comes last and in words, but in the answer it comes first: where does the model begin to "
            "read, and where does it find the 12?"
        )
        state = {"prompt": IN_WORDS, "output": "", "view": CROSS_ATTENTION, **attention.explorer_state(query=0)}
        offers.append(Try("In words", about, state))
    about = (
        "Five outputs are followed side by side. What is below the line was cut and never came back. The thick path is the best "
        "output."
    )
    return [*offers, Try("A wide beam", about, {"view": BEAM_SEARCH, "width": 5, "output": ""})]


def _one_wrong(translation: Translation) -> tuple[str, int] | None:
    """The model's answer with the second likeliest token in its middle, and that place; None if no text reads so."""
    subject = translation.subject
    tokens, answer = special_tokens_of(subject), answer_of(subject).ids
    most = longest_answer(subject.lm.model.config)
    if not answer:
        return None
    place = len(answer) // 2
    logits = output_of(subject.key, subject.seen, (tokens.start, *answer)[:most]).logits[place]
    likely = [
        int(i) for i in np.argsort(-logits, kind="stable") if i not in (answer[place], tokens.start, tokens.end, tokens.padding)
    ]
    if not likely:
        return None
    text = tokens.decode([*answer[:place], likely[0], *answer[place + 1 :]][: most - 1])
    return (text, place) if len(tokens.encode_answer(text).ids) > place else None
