"""The suggestions for a classifier and a text: a negation, a word less, a confident mistake, a selective head."""

from __future__ import annotations

from gptviz.figures.kit.format import percent
from gptviz.interp.explaining.decision import decisive_token
from gptviz.interp.reading.next_token import probabilities
from gptviz.interp.reading.overview import largest_head
from gptviz.text import WordTokenizer, words_of
from gptviz.ui.records.classify import ATTENTION, WORDS
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import Try, escaped

from .decision import judged, logits_without, text_places
from .held_out import worst


def tries(subject: Subject) -> list[Try]:
    """The suggestions for this model and text."""
    offers: list[Try] = []
    if _is_of_sentiment(subject.lm.labels):
        notice = (
            "To a reader this is praise. Does the model see that? Compare the bars of “never” and “dull”, then take “never” away."
        )
        offers.append(Try("A negation", notice, {"prompt": "the film was never dull", "view": WORDS}))
    if len(text_places(subject)) > 1 and (turned := _turning(subject)) is not None:
        offers.append(turned)
    if (wrong := worst(subject)) is not None:
        text, label, taken = wrong
        notice = f"Its label is {escaped(label)}; the fully trained model says {escaped(taken)}. Which words mislead it?"
        offers.append(Try("A confident mistake", notice, {"prompt": text, "view": WORDS}))
    if subject.lm.model.config.n_layer and len(subject.seen) > 1:
        offers.append(_selective(subject))
    return offers


def _is_of_sentiment(names: tuple[str, ...]) -> bool:
    return sorted(name.lower()[:3] for name in names) == ["neg", "pos"]


def _turning(subject: Subject) -> Try | None:
    """The text without the word on which its label depends most.

    None if every word speaks against the label, the text is too long to try, or no text is read as what is left.
    """
    read, logits = judged(subject.key, subject.seen), logits_without(subject)
    if logits is None:
        return None
    without = probabilities(logits)
    place, label = decisive_token(read.probabilities, without)
    before, after = read.probabilities[read.label], without[place, read.label]
    names, shorter = [escaped(name) for name in subject.lm.labels], _shorter(subject, place)
    if after >= before or shorter is None:
        return None
    word, text = shorter
    title = "Without"
    outcome = f"{names[read.label]} falls from {percent(float(before))} to {percent(float(after))}"
    if label != read.label:
        outcome, title = f"{outcome}, and the label changes to {names[label]}", "The label changes without"
    notice = f"This is the word on which the label depends most: {outcome}."
    return Try(f"{title} “{word}”", notice, {"prompt": text, "view": WORDS})


def _shorter(subject: Subject, place: int) -> tuple[str, str] | None:
    """The word at this place of the text, and the text without it, or None if that text would be read in another way."""
    tokenizer, some = subject.lm.tokenizer, text_places(subject)
    if isinstance(tokenizer, WordTokenizer):
        texts = words_of(subject.prompt)[: len(subject.seen)]
        return texts.pop(place), " ".join(texts)
    left = [subject.seen[other] for other in some if other != some[place]]
    text = tokenizer.decode(left)
    read = tuple(tokenizer.encode(text).ids)
    same = read == (*subject.seen[: some[place]], *subject.seen[some[place] + 1 :])
    return (subject.labels[some[place]], text) if same else None


def _selective(subject: Subject) -> Try:
    """The head whose rows are spread over the fewest words."""
    facts = attention.view(subject.key, attention.stack_read(subject, encoder_decoder.DECODER)).overview.facts
    assert facts is not None  # there are two words
    block, head = largest_head(-facts.spread)
    notice = (
        f"In block {block}, head {head} a word reads about {facts.spread[block, head]:.1f} of the {len(subject.seen)} words on "
        "average, the fewest of all heads."
    )
    return Try("The most selective head", notice, {"view": ATTENTION, **attention.explorer_state(block=block, head=head)})
