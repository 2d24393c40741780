"""The label of a text, and what each word does for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch

from gptviz.figures.explaining.contributions import contributions
from gptviz.figures.kit.format import brief, format_count, format_signed, percent
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY
from gptviz.figures.reading.labels import labels
from gptviz.interp.explaining.decision import (
    Decision,
    Worth,
    decision,
    decisive_token,
    left_out,
    runner_up,
    token_worth,
)
from gptviz.interp.reading.classification import Classified, Judged, classify, has_shares, judge
from gptviz.interp.reading.next_token import probabilities
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.text import WordTokenizer, words_of
from gptviz.ui.records.attention import PAGE as ATTENTION_PAGE
from gptviz.ui.records.classify import WORDS
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import (
    Try,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    say_answer,
    show_figure,
    theme,
)

from .held_out import ABOUT_BASELINE, on_card, worst_mistake

LIKELIEST = "the likeliest"
NEXT = "the next likeliest"
ALONE = "none: its logit alone"
MOST_LABELS = 5  # in sight
# A text is read again without each of its tokens in turn: with more tokens than this, it takes too
# long.
MOST_LEFT_OUT = 128


def check_words(subject: Subject) -> None:
    """A warning where the model knows no word of the text; where there is no word to read, the page
    stops.
    """
    tokenizer = subject.lm.tokenizer
    if not subject.seen:
        st.info(f"The text has {tokenizer.without}. Type some text above.")
        st.stop()
    words = [subject.seen[place] for place in text_places(subject)]
    unknown = tokenizer.unknown_id
    if unknown is not None and set(words) == {unknown}:
        st.warning(
            "The model knows no word of this text: it reads "
            f"{in_quotes(tokenizer.label(unknown))} for each, and the "
            "label says nothing about the text.",
            icon=":material/help:",
        )


def text_places(subject: Subject) -> range:
    """Where the tokens of the text stand among those that are read: between the tokens that are put
    around every text.
    """
    text = subject.lm.tokenizer.text_slice(subject.seen)
    return range(text.start, text.stop)


def by_word(subject: Subject) -> PageResult:
    """What each word does for the label: its share of the decision, or what the decision loses
    without it.
    """
    if has_shares(subject.lm.model):
        # The labels with their probabilities, and what each word adds to the decision.
        reading = judge_text(subject.key, subject.seen)
        names = subject.lm.labels
        assert isinstance(reading, Classified)
        answer = st.container()
        left, right = st.columns([5, 9], gap="medium")
        with left:
            by_share = decision(reading, *_choose_labels(reading, names))
            _adds_up(by_share, names)
            _accuracy(subject)
        shares = by_share.labelled(subject.labels)
        above, below = sides(by_share, names)
        most = int(np.abs(by_share.shares).argmax())
        with answer:
            say_answer(_which_words(by_share, subject.labels, above, below))
        with right:
            show_figure(
                contributions(shares, theme(), above=above, below=below),
                key="contributions",
                alt=(
                    f"What each of {format_count(len(subject.seen), 'word')} adds to the decision, "
                    f"upwards for {above}; the largest "
                    f"share is that of “{subject.labels[most]}”, "
                    f"{format_signed(by_share.shares[most], 3)}. All shares and the bias "
                    f"together: {format_signed(by_share.sum, 3)}."
                ),
            )
            st.caption(
                f"The largest bar is that of {in_quotes(subject.labels[most])}: "
                f"{format_signed(by_share.shares[most], 3)} of "
                f"{format_signed(by_share.sum, 3)} in all. Take the word out of the text, and see "
                "what "
                "becomes of the label."
            )
        return PageResult(
            lambda: by_share.labelled(subject.labels),
            code(subject, by_share, range(len(subject.seen))),
            "Words",
        )
    lost = words_left_out(subject)
    if lost is None:
        return NOTHING
    places = text_places(subject)
    return PageResult(
        lambda: lost.labelled([subject.labels[place] for place in places]),
        code(subject, lost, places),
        "A token left out",
    )


def _which_words(by_share: Decision, words: Sequence[str], above: str, below: str) -> str:
    """The words that add most for the label that the sum is in favour of, and the one that adds
    most against it, as Markdown.
    """
    sign = 1 if by_share.sum >= 0 else -1
    label = escape_markdown(above if sign > 0 else below)
    shares = sign * by_share.shares
    first, *others = np.argsort(-shares, kind="stable").tolist()
    if shares[first] <= 0:
        return f"No word speaks for “{label}”: what all texts have in common decides (the bias)."
    told = f"{in_quotes(words[first])} speaks most for “{label}”"
    if others and shares[others[0]] > 0:
        told += f", then {in_quotes(words[others[0]])}"
    if others and shares[others[-1]] < 0:
        told += f"; {in_quotes(words[others[-1]])} speaks most against it"
    return f"{told}."


# Read-only, shared by all sessions.
@jobs.resource("Reading the text", max_entries=64)
def judge_text(key: ModelKey, ids: tuple[int, ...]) -> Judged:
    """The labels of the text `ids` with their probabilities; if the head of the model says what
    each token adds, that too.
    """
    lm = language_model(key)
    return (classify if has_shares(lm.model) else judge)(
        lm.model, torch.tensor(ids, device=lm.device)
    )


def _choose_labels(reading: Judged, names: tuple[str, ...]) -> tuple[int, int | None]:
    """The likeliest labels as bars; and the label explained with the one against it, which have the
    colours of their sides: the second and the first of two, or those that the controls choose.
    """
    bars = st.container()
    label, against = _ask_labels(reading, names)
    colour = {label: QUERY} | ({} if against is None else {against: KEY})
    order = np.argsort(-reading.probabilities, kind="stable")[:MOST_LABELS]
    likeliest = LabelledArray(
        reading.probabilities[order],
        (Axis("label", tuple(names[i] for i in order)),),
        "probability",
    )
    spelled_out = ", ".join(f"{names[i]} {percent(float(reading.probabilities[i]))}" for i in order)
    with bars:
        figure = labels(likeliest, theme(), colours=[colour.get(int(i), OUTPUT) for i in order])
        show_figure(figure, key="labels", alt=f"The text is: {spelled_out}")
    return label, against


def _ask_labels(reading: Judged, names: tuple[str, ...]) -> tuple[int, int | None]:
    if len(names) == 2:
        return 1, 0
    hint = "The label whose logit (its score) the bars are about."
    chosen = controls.select(
        "Label", [LIKELIEST, *names], key="label", default=LIKELIEST, help=hint
    )
    hint = "Only differences of logits decide: what adds the same to both labels changes nothing."
    against = controls.select("Against", (NEXT, ALONE), key="against", default=NEXT, help=hint)
    label = names.index(chosen) if chosen in names else reading.label
    return label, runner_up(reading, label) if against == NEXT else None


def _adds_up(chosen: Decision, names: tuple[str, ...]) -> None:
    """The sum of bias and words next to the logits the model gave."""
    label = escape_markdown(names[chosen.label])
    if chosen.against is None:
        model = f"logit of {label}"
    else:
        model = f"{label} − {escape_markdown(names[chosen.against])}"
    n = len(chosen.shares)
    rows = [
        ("bias", format_signed(chosen.bias, 3)),
        (f"+ {n} word{'s' if n > 1 else ''}", format_signed(float(chosen.shares.sum()), 3)),
        ("**= sum**", f"**{format_signed(chosen.sum, 3)}**"),
        (
            f"the model’s {'own' if chosen.against is None else 'logits'}: {model}",
            format_signed(chosen.total, 3),
        ),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    apart = abs(chosen.sum - chosen.total)
    st.markdown(
        f"| It adds up | logit |\n|:--|--:|\n{table}",
        help=f"The sum of the bars, and what the model computed: they differ by {brief(apart, 1)}, "
        "which is rounding.",
    )


def _accuracy(subject: Subject) -> None:
    """How often the model is right, where its card knows."""
    if (accuracy := on_card(subject.lm.card)) is not None:
        st.caption(accuracy, help=ABOUT_BASELINE)


def sides(chosen: Decision | Worth, names: tuple[str, ...]) -> tuple[str, str]:
    """The names of the two sides: the one that a bar upwards speaks for, and the one for a bar
    downwards.
    """
    label = names[chosen.label]
    return label, f"not {label}" if chosen.against is None else names[chosen.against]


def code(subject: Subject, explained: Decision | Worth, places: range) -> str:
    """The lines of `gptviz` that compute what each token at these places adds, or what the decision
    loses without it.
    """
    names = ", ".join(f"{i}: {name!r}" for i, name in enumerate(subject.lm.labels))
    asked = f"{explained.label}, {explained.against})  # {names}"
    if isinstance(explained, Decision):
        functions = ("decision", "classify")
        result = f"decision(classify(lm.model, ids), {asked}"
    else:
        without = f"left_out(lm.model, ids, {places})"
        functions = ("left_out, token_worth", "judge")
        result = f"token_worth(judge(lm.model, ids), {without}, {asked}"
    imports = (
        f"from gptviz.interp.explaining.decision import {functions[0]}",
        f"from gptviz.interp.reading.classification import {functions[1]}",
    )
    return f"""{opening(subject.lm, *imports)}
ids = lm.seen(lm.encode({subject.prompt!r}))
result = {result}
result.labelled([lm.tokenizer.label(i) for i in ids[{places.start}:{places.stop}].tolist()])"""


def words_left_out(subject: Subject) -> Worth | None:
    """The labels with their probabilities, and what the decision loses without each word (the
    result).

    For a head under which no word has its own share. None if the text is too long, or too short, to
    do without a word.
    """
    reading = judge_text(subject.key, subject.seen)
    names = subject.lm.labels
    left, right = st.columns([5, 9], gap="medium")
    with left:
        label, against = _choose_labels(reading, names)
        _accuracy(subject)
    with right:
        if (without := logits_without(subject)) is None:
            n = len(text_places(subject))
            st.info(
                "To see what a token is worth, the model reads the text once more without it. "
                f"This text has {n:,} tokens; that "
                f"is done for texts of 1 to {MOST_LEFT_OUT}: "
                f"{'type a' if not n else 'shorten the'} text above."
            )
            return None
        lost = token_worth(reading, without, label, against)
        tokens = [subject.labels[place] for place in text_places(subject)]
        above, below = sides(lost, names)
        most = int(np.abs(lost.of_tokens).argmax())
        show_figure(
            contributions(
                lost.labelled(tokens),
                theme(),
                above=above,
                below=below,
                has_bias=False,
                verb="lost without it:",
            ),
            key="contributions",
            alt=(
                f"What the decision loses without each of {format_count(len(tokens), 'token')}, "
                f"upwards for {above}; it loses most "
                f"without “{tokens[most]}”, {format_signed(lost.of_tokens[most], 3)}."
            ),
        )
    with left:
        if against is None:
            of = f"logit of {escape_markdown(names[label])}"
        else:
            of = f"{escape_markdown(names[label])} − {escape_markdown(names[against])}"
        st.caption(
            f"With all tokens, {of} is **{format_signed(lost.total, 3)}**. A bar says how much of "
            "it is "
            "lost when the model reads the "
            "text without that token. The bars do not add up to it: the tokens work together.",
            help="A logit is the score of a label. This head reads only the first token, which has "
            "gathered from the others "
            "what matters; so no token has a share of its own, and leaving it out is what can be "
            "measured.",
        )
    return lost


def logits_without(subject: Subject) -> Float64Array | None:
    """The logits [tokens, n_label] for the text without each of its tokens in turn, or None if it
    has too few or too many.
    """
    some = text_places(subject)
    if not 1 <= len(some) <= MOST_LEFT_OUT or len(subject.seen) < 2:
        return None
    return _judge_without(subject.key, subject.seen, some)


@jobs.resource("Reading the text without each token", max_entries=64)
def _judge_without(key: ModelKey, ids: tuple[int, ...], gone: range) -> Float64Array:
    lm = language_model(key)
    return left_out(lm.model, torch.tensor(ids, device=lm.device), gone)


def attention_between(subject: Subject) -> PageResult:
    """The attention between the words; nothing for a model without."""
    if not subject.lm.model.config.n_layer:
        st.info("This model has no blocks and therefore no attention: each word counts by itself.")
        return NOTHING
    attention.show(subject, encoder_decoder.DECODER)
    frame.link(ATTENTION_PAGE, "On a page of its own")
    return PageResult()


def verdict(subject: Subject) -> None:
    """The label of the text, in a line."""
    reading = judge_text(subject.key, subject.seen)
    label = subject.lm.labels[reading.label]
    probability = float(reading.probabilities[reading.label])
    st.markdown(f"The text above is **{escape_markdown(label)}**: {percent(probability)}")


def tries(subject: Subject) -> list[Try]:
    """The suggestions for this model and text."""
    offers: list[Try] = []
    if sorted(name.lower()[:3] for name in subject.lm.labels) == ["neg", "pos"]:
        notice = (
            "To a reader this is praise. Does the model see that? Compare the bars of “never” and "
            "“dull”, then take “never” away."
        )
        offers.append(
            Try("A negation", notice, {"prompt": "the film was never dull", "view": WORDS})
        )
    if len(text_places(subject)) > 1 and (turned := _turning(subject)) is not None:
        offers.append(turned)
    if (wrong := worst_mistake(subject)) is not None:
        text, label, taken = wrong
        notice = (
            f"Its label is {escape_markdown(label)}; the fully trained model says "
            f"{escape_markdown(taken)}. Which "
            "words mislead it?"
        )
        offers.append(Try("A confident mistake", notice, {"prompt": text, "view": WORDS}))
    return offers


def _turning(subject: Subject) -> Try | None:
    """The text without the word on which its label depends most.

    None if every word speaks against the label, the text is too long to try, or no text is read as
    what is left.
    """
    read = judge_text(subject.key, subject.seen)
    logits = logits_without(subject)
    if logits is None:
        return None
    without = probabilities(logits)
    place, label = decisive_token(read.probabilities, without)
    before = read.probabilities[read.label]
    after = without[place, read.label]
    names = [escape_markdown(name) for name in subject.lm.labels]
    shorter = _shorten_text(subject, place)
    if after >= before or shorter is None:
        return None
    word, text = shorter
    title = "Without"
    outcome = f"{names[read.label]} falls from {percent(float(before))} to {percent(float(after))}"
    if label != read.label:
        outcome = f"{outcome}, and the label changes to {names[label]}"
        title = "The label changes without"
    notice = f"This is the word on which the label depends most: {outcome}."
    return Try(f"{title} “{word}”", notice, {"prompt": text, "view": WORDS})


def _shorten_text(subject: Subject, place: int) -> tuple[str, str] | None:
    """The word at this place of the text, and the text without it, or None if that text would be
    read in another way.
    """
    tokenizer = subject.lm.tokenizer
    some = text_places(subject)
    if isinstance(tokenizer, WordTokenizer):
        texts = words_of(subject.prompt)[: len(subject.seen)]
        return texts.pop(place), " ".join(texts)
    left = [subject.seen[other] for other in some if other != some[place]]
    text = tokenizer.decode(left)
    read = tuple(tokenizer.encode(text).ids)
    same = read == (*subject.seen[: some[place]], *subject.seen[some[place] + 1 :])
    if same:
        return (subject.labels[some[place]], text)
    return None
