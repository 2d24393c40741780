"""A logit as a sum of what every part adds: what is asked, the parts, and one of them split
further.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components.cell_grid import Cell
from gptviz.figures.explaining import parts as figures
from gptviz.figures.explaining.contributions import LONGEST_LABEL, contributions
from gptviz.figures.kit.format import brief, format_count, format_signed, power, side_by_side
from gptviz.figures.kit.heat import largest_size
from gptviz.interp.explaining.attribution import (
    MLP,
    REPLACED,
    Attribution,
    PartValue,
    attribute_logit,
    stream_at,
)
from gptviz.interp.explaining.decomposition import Stream
from gptviz.interp.reading.by_word import sum_by_word
from gptviz.interp.units.unit import Unit, unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import dictionaries
from gptviz.language_model.core import answer_space_of
from gptviz.language_model.explaining import attribute
from gptviz.model import Config
from gptviz.model.parts.heads import HEADS
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.model.precision import rounds
from gptviz.text.datasets.base import Contrast
from gptviz.text.tokenizers.pieces import word_labels
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.classify import PAGE as CLASSIFY
from gptviz.ui.records.features import PAGE as FEATURES
from gptviz.ui.records.neurons import PAGE as NEURONS
from gptviz.ui.shell import frame
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.shell.subject.unit_titles import name_with, titles_of
from gptviz.ui.views import by_word, text_position
from gptviz.ui.views.contrasts import known_contrast, known_offers
from gptviz.ui.views.edits import switch
from gptviz.ui.views.encoder_decoder import DECODER
from gptviz.ui.views.notes import show_notes
from gptviz.ui.views.read import PromptRead
from gptviz.ui.views.text_position import END
from gptviz.ui.views.which_logit import LISTED, which_logit
from gptviz.ui.widgets import (
    Try,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    show_figure,
    theme,
)
from gptviz.ui.widgets.cells import show_cells

# How many tokens before a guess a sentence quotes.
QUOTED = 12
# A sum that is off by less than this share of its largest part is as near as products in 2 bytes a
# number come: they keep 8 bits.
ROUNDED = 1e-2
STRONGEST = "the strongest head"
GRID = "attribution grid"
DICTIONARY = "dictionary."
SHOWN_NEURONS = 14
# A part that takes away less than this share of the largest is not worth a look.
WORTH = 0.02


@dataclass(frozen=True)
class AttributionSetting:
    """A logit that the page takes apart."""

    subject: Subject  #: the model and the prompt
    text: PromptRead  #: what the model reads
    #: after which token; None for a classifier, whose labels are of the whole text
    position: int | None
    token: int  #: whose logit: a token or a label
    against: int | None  #: whose logit is subtracted; None: nothing is subtracted

    def attribution(self, neurons_of: str | None = None) -> Attribution:
        """The amount that each part adds."""
        return _attribute_logit(
            self.subject.key, self.text, self.token, self.position, self.against, neurons_of
        )

    def title(self, part: PartValue) -> str:
        """The title of a part, with the reader's name of it, as text."""
        return name_with(self.subject.key)(part.name, part.title)

    def say(self, part: PartValue) -> str:
        """The same as Markdown."""
        return escape_markdown(self.title(part))

    def name(self, token: int) -> str:
        """The token or the label, as text."""
        return str(answer_space_of(self.subject.lm).label(token))

    @property
    def known_contrast(self) -> Contrast | None:
        """The prompt as one with a known answer, where the page is about that answer; else None."""
        if self.position != len(self.text.ids) - 1:
            return None
        return known_contrast(self.subject.lm, self.subject.prompt, self.token)

    @property
    def sum_name(self) -> str:
        """The sum of the parts."""
        alone = f"logit of {self.name(self.token)}"
        if self.against is None:
            return alone
        return f"{self.name(self.token)} minus {self.name(self.against)}"

    @property
    def sides(self) -> tuple[str, str]:
        """The tokens that a part which adds, and a part which subtracts, speak for."""
        if self.against is None:
            return f"for {self.name(self.token)}", f"against {self.name(self.token)}"
        return f"for {self.name(self.token)}", f"for {self.name(self.against)}"

    def place_of(self, part: str) -> str:
        """In which text the head of this name reads, to be added to a position: of two texts the
        source has to be named.
        """
        if "cross_attention" in part:
            return " of the source"
        return ""

    def read_tokens(self, part: str) -> tuple[str, ...]:
        """The visible forms of the tokens that the head of this name reads."""
        if "cross_attention" in part:
            ids = self.text.source
        else:
            ids = self.text.ids
        return tuple(map(self.subject.lm.tokenizer.label, ids or ()))


def check_head(subject: Subject) -> None:
    """Where this model's answer is no sum over its parts, a message says why, and the page
    stops.
    """
    head = HEADS[subject.lm.model.config.head]
    if subject.kind.guesses == "label" and not head.has_shares:
        st.info(
            f"The head of this classifier, “{head.title}”, passes what it reads through a curved "
            "function: the score of a label "
            "is then no sum of what the parts of the model add. The page Classify shows what each "
            "word is worth instead.",
            icon=":material/info:",
        )
        frame.link(CLASSIFY, "Open it on the page Classify")
        next_step()
        st.stop()


def position_control(subject: Subject, text: PromptRead, strip: Any, beside: Any) -> int | None:
    """The control `position` in the container `beside`, and the tokens, one of which can be
    clicked, in `strip`. A classifier has neither.
    """
    if subject.kind.guesses == "label":
        return None
    # the token after the start, whose guess is no end
    first = 0 if subject.kind.has_source else None
    with beside:
        position = text_position.position(len(text.ids) - 1, first)
    with strip:
        if subject.kind.continues:
            text_position.strip(subject, position)
        else:
            labels = [subject.lm.tokenizer.label(i) for i in text.ids]
            about = (
                "The tokens that the decoder reads: the start token, then its own answer; choose "
                "one to see the guess after it"
            )
            text_position.plain_strip(
                labels, position, label=about, spaced=subject.lm.tokenizer.is_spaced
            )
    return position


@contextmanager
def explain_refusal() -> Iterator[None]:
    """Where a part of the model lets no sum through, a message says which, and the page stops."""
    try:
        yield
    except ValueError as error:
        st.info(
            escape_markdown(f"This model cannot be taken apart: {error}."), icon=":material/info:"
        )
        next_step()
        st.stop()


def setting(
    subject: Subject, text: PromptRead, position: int | None, of: Any, less: Any
) -> AttributionSetting:
    """The controls for the logit, in the containers `of` and `less`."""
    logits = _stream(subject.key, text, position).logits.float().cpu()
    likely = logits.argsort(descending=True, stable=True)[:LISTED].tolist()
    at_end = position == len(text.ids) - 1
    return AttributionSetting(
        subject, text, position, *which_logit(subject, likely, of, less, at_end=at_end)
    )


# Shared by all sessions: read-only. An entry has the values of every block for every token of the
# text.
@jobs.resource("Reading the prompt", max_entries=4)
def _stream(key: ModelKey, text: PromptRead, position: int | None) -> Stream:
    return stream_at(language_model(key).model, text.ids, position, text.source)


def parts(setting: AttributionSetting, attribution: Attribution) -> None:
    """The waterfall of all parts, the largest first."""
    above, below = setting.sides
    strongest = max(attribution.parts, key=lambda part: abs(part.value))
    show_figure(
        figures.waterfall(
            attribution.labelled(),
            theme(),
            whole=setting.sum_name,
            above=above,
            below=below,
        ),
        key="parts",
        alt=(
            f"What each of {format_count(len(attribution.parts), 'part')} adds to the "
            f"{attribution.unit}, {format_signed(attribution.sum)} "
            f"in all, the largest first: {setting.title(strongest)}, "
            f"{format_signed(strongest.value)}."
        ),
    )


def part_control(setting: AttributionSetting, attribution: Attribution) -> str | None:
    """The control `part`: the head or the MLP whose share is split further, or a dictionary that
    splits the stream. None if the model has no heads and no MLPs.
    """
    heads = list(attribution.sources)
    mlps = [part.name for part in attribution.parts if part.name.endswith(".mlp")]
    if not heads and not mlps:
        return None
    lm = setting.subject.lm
    if lm.kind.continues:
        stream = [f"{DICTIONARY}{name}" for name in lm.dictionaries()]
    else:
        stream = []
    hint = (
        "A head is split by the tokens that it reads, an MLP by its neurons, the stream by the "
        "features of a dictionary, if "
        "the model has one. You can also click a cell of the grid."
    )
    first = (STRONGEST, *heads) if heads else ()
    chosen = controls.select("Split further", (*first, *mlps, *stream), key="part", help=hint)
    strongest = max(attribution.sources, key=lambda head: abs(attribution.of(head)))
    if chosen == STRONGEST:
        return strongest
    return chosen


def grid(setting: AttributionSetting, attribution: Attribution, chosen: str | None) -> None:
    """All heads and MLPs by block; a click chooses one."""
    config = setting.subject.lm.model.config
    cells = attribution.grid(config)
    labels = cells.axes[1].labels
    names = [
        [_name_of(block, label) for label in labels] for block in range(len(cells.axes[0].labels))
    ]
    values = np.asarray(cells.values, float)
    limit = largest_size(values)
    title = titles_of(setting.subject.key)

    def cell(row: int, column: int) -> Cell | None:
        value = float(values[row, column])
        name = names[row][column]
        if not math.isfinite(value):
            return None
        return Cell(
            name,
            title(unit(name, config)),
            value,
            texts[row * len(labels) + column],
            chosen=name == chosen,
        )

    def pick(name: str) -> None:
        if name in attribution.sources or name.endswith(".mlp"):
            st.session_state["part"] = name

    texts = side_by_side(values.ravel().tolist())
    above, below = setting.sides
    if chosen is None or chosen.startswith(DICTIONARY):
        framed = ""
    else:
        framed = f"; framed: {title(unit(chosen, config))}"
    show_cells(
        [
            (f"block {block}", [cell(row, i) for i in range(len(labels))])
            for row, block in enumerate(cells.axes[0].labels)
        ],
        [f"head {label}" if label.isdecimal() else label for label in labels],
        (-limit, limit),
        key=GRID,
        alt=f"What every head and MLP adds, {format_count(len(names), 'block')} by "
        f"{format_count(len(labels), 'column')}{framed}.",
        choose=pick,
        says="adds",
        unit=cells.unit,
        legend=f"Blue: {above}; orange: {below}.",
        hint="A click, or Enter, chooses a head or an MLP; the arrow keys walk.",
        code=code(setting),
        table=("part", "", cells.unit),
    )


def _name_of(block: int, label: str) -> str:
    """The name of the unit in a column of the grid."""
    kind = "cross_attention" if label.startswith("cross ") else "attention"
    piece = label.removeprefix("cross ")
    if piece == MLP:
        return Unit("mlp", block).name
    return Unit(kind, block, None if piece == REPLACED else int(piece)).name  # type: ignore[arg-type]


def result(setting: AttributionSetting, attribution: Attribution) -> str:
    """Which head or MLP speaks most for the token, in a sentence."""
    best = attribution.strongest
    token = in_quotes(setting.name(setting.token))
    if setting.against is None:
        whole = f"its logit, {format_signed(attribution.sum)}"
    else:
        other = in_quotes(setting.name(setting.against))
        verb = "leads" if attribution.sum >= 0 else "trails"
        whole = f"the {brief(abs(attribution.sum))} points by which {token} {verb} {other}"
    return (
        f"{capitalise_text(setting.say(best))} speaks most for {token}: it adds "
        f"{format_signed(best.value)} to {whole}."
    )


def verdict(setting: AttributionSetting, attribution: Attribution) -> None:
    """The logit in a sentence, and whether the parts add up to it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(_sentence(setting, attribution), width="content")
        error = power(attribution.error)
        is_rounded = attribution.error < ROUNDED and rounds(setting.subject.lm.model)
        if attribution.adds_up:
            st.badge(f"adds up: error {error}", icon=":material/check:", color="green")
        elif is_rounded:
            st.badge(
                f"adds up but for rounding: error {error}", icon=":material/check:", color="orange"
            )
        else:
            st.badge(f"does not add up: error {error}", icon=":material/error:", color="red")
    if is_rounded and not attribution.adds_up:
        st.caption(_why_not(setting, attribution))
    elif not attribution.adds_up:
        st.warning(_why_not(setting, attribution), icon=":material/error:")


def _sentence(setting: AttributionSetting, attribution: Attribution) -> str:
    token = f"**{in_quotes(setting.name(setting.token))}**"
    place = ""
    cap = ""
    if setting.position is not None:
        place = f", after {in_quotes(quote_text(setting, setting.position))} (position {setting.position}),"
    if attribution.capped != attribution.logit and math.isfinite(attribution.logit):
        cap = (
            f" The model caps its logits: {brief(attribution.logit, 4)} becomes "
            f"{brief(attribution.capped, 4)}."
        )
    if setting.against is None:
        return f"The logit of {token}{place} is **{brief(attribution.logit, 4)}**.{cap}"
    other = f"**{in_quotes(setting.name(setting.against))}**"
    minus = f"The logit of {token}{place} minus that of {other} is **{format_signed(attribution.logit)}**"
    known = setting.known_contrast
    if known is None or setting.against != setting.subject.lm.token(known.wrong):
        means = ""
    else:
        means = f" {known.about}"
    return (
        f"{minus}{f'.{cap} So' if cap else ':'} {token} is {_times(attribution.capped)} "
        f"{other}.{means}"
    )


def quote_text(setting: AttributionSetting, position: int) -> str:
    """The end of the text up to a position."""
    label = setting.subject.lm.tokenizer.label
    gap = " " if setting.subject.lm.tokenizer.is_spaced else ""
    shown = gap.join(label(i) for i in setting.text.ids[max(0, position - QUOTED) : position + 1])
    return ("…" if position > QUOTED else "") + shown


def _times(difference: float) -> str:
    """How much likelier one is than the other, whose logit is lower by `difference`."""
    if not math.isfinite(difference):
        return "not known to be likelier than"
    if abs(difference) > 14:
        if difference > 0:
            return "more than a million times as likely as"
        return "less than a millionth as likely as"
    ratio = math.exp(difference)
    if ratio < 1000:
        return f"{ratio:,.3g} times as likely as"
    return f"{ratio:,.0f} times as likely as"


def _why_not(setting: AttributionSetting, attribution: Attribution) -> str:
    says = (
        f"All parts together are {brief(attribution.sum, 4)}, the model’s own logit is "
        f"{brief(attribution.logit, 4)}."
    )
    if not math.isfinite(attribution.logit):
        return (
            f"{says} The weights or edits of this model are so large that they overflow: choose "
            "another model or step above, or take its edits away."
        )
    if rounds(setting.subject.lm.model):
        return (
            f"{says} This model multiplies in 2 bytes a number, which rounds every product: "
            "choose float32 under Precision."
        )
    return f"{says} A part is missing or counted twice: do not trust the figures below."


def split(setting: AttributionSetting, attribution: Attribution, chosen: str) -> None:
    """The share of a head by the tokens that it reads, of an MLP by its neurons, or of the stream
    by features.
    """
    if chosen in attribution.sources:
        by_token(setting, attribution, chosen)
    elif chosen.startswith(DICTIONARY):
        by_feature(setting, chosen.removeprefix(DICTIONARY))
    else:
        # The share of an MLP by its neurons.
        values = setting.attribution(chosen).neurons[chosen]
        every = np.argsort(-np.abs(values), kind="stable")
        order = every[: max(1, min(SHOWN_NEURONS, np.count_nonzero(values)))]
        shown = LabelledArray(
            values[order], (Axis("neuron", tuple(map(str, order.tolist()))),), attribution.unit
        )
        above, below = setting.sides
        part = next(part for part in attribution.parts if part.name == chosen)
        show_figure(
            contributions(
                shown, theme(), above=above, below=below, height=260, has_bias=False, room=50
            ),
            key="sources",
            alt=(
                f"What the {len(order)} strongest neurons of {setting.title(part)} add; neuron "
                f"{order[0]} "
                f"adds {format_signed(values[order[0]])}."
            ),
        )
        rest = float(values[every[len(order) :]].sum())
        st.caption(
            f"**{setting.say(part)}** adds {format_signed(part.value)}: the {len(order)} strongest "
            "of its "
            f"{len(values):,} neurons by number, "
            "each its activation times its row of the output matrix. All the others together add "
            f"{format_signed(rest)}."
        )


def by_token(setting: AttributionSetting, attribution: Attribution, head: str) -> None:
    """The share of a head by the tokens that it reads."""
    shares = attribution.read_by(head, setting.read_tokens(head))
    above, below = setting.sides
    most = int(np.abs(shares.values.astype(float)).argmax())
    seen = shares
    if (
        setting.position is not None
        and "cross" not in head
        and setting.subject.lm.model.config.mask == "causal"
    ):
        # The tokens that a causal head may read: the others have no bar.
        end = setting.position + 1
        seen = LabelledArray(
            shares.values[:end],
            (Axis(shares.axes[0].name, shares.axes[0].labels[:end]),),
            shares.unit,
        )
    if "cross" in head:
        words = None
    else:
        words = by_word.split(setting.subject, setting.text.ids[: len(seen.values)])
    is_merged = words is not None and by_word.switch()
    if words is not None and is_merged:
        names = tuple(word_labels(setting.subject.lm.tokenizer, setting.text.ids, words))
        seen = LabelledArray(
            sum_by_word(np.asarray(seen.values, np.float64), words),
            (Axis("word that is read", names),),
            seen.unit,
        )
    part = next(part for part in attribution.parts if part.name == head)
    token = in_quotes(shares.axes[0].labels[most])
    share = format_signed(float(shares.values[most]))
    piece = "word" if is_merged else "token"
    room = 30 + 8 * min(LONGEST_LABEL, max(map(len, seen.axes[0].labels)))
    show_figure(
        contributions(
            seen, theme(), above=above, below=below, height=210 + room, has_bias=False, room=room
        ),
        key="sources",
        alt=f"What {setting.title(part)} adds by each of {format_count(len(seen.values), piece)} that it reads; "
        "most by the token "
        f"at position {most}.",
    )
    st.caption(
        f"**{capitalise_text(setting.say(part))}** adds {format_signed(part.value)}: a bar for "
        f"each {piece} that it "
        "reads, the pattern "
        "times what the token’s value "
        f"adds{', summed over the tokens of a word' if is_merged else ''}. The token that adds "
        "most "
        f"in size is {token}, position {most}{setting.place_of(head)}: {share}."
    )


def by_feature(setting: AttributionSetting, dictionary: str) -> None:
    """The logit by the features of a dictionary, with what the dictionary misses."""
    shares = ask_features(setting, dictionary).value
    labels = shares.axes[0].labels
    values = shares.values
    # behind the features stand the decoder's bias, the error, and what is written later
    count = len(labels) - 3
    shown = [*range(min(count, SHOWN_NEURONS)), *range(count, len(labels))]
    names = (*labels[: min(count, SHOWN_NEURONS)], "bias", "missed", "later")
    above, below = setting.sides
    show_figure(
        contributions(
            LabelledArray(values[shown], (Axis("part", names),), shares.unit),
            theme(),
            above=above,
            below=below,
            height=300,
            has_bias=False,
            room=90,
        ),
        key="sources",
        alt=f"What the features of {dictionary} add: "
        + ", ".join(f"{labels[i]} {format_signed(values[i])}" for i in shown[:5])
        + ".",
    )
    bias, missed, later = map(format_signed, values[count:])
    st.caption(
        f"**The stream by the features of {escape_markdown(dictionary)}**: each adds its "
        "activation times "
        "its row of the decoder. The "
        f"{format_count(count, 'active feature')} add "
        f"{format_signed(float(values[:count].sum()))}, the "
        f"decoder’s bias {bias}, and what the "
        f"dictionary misses, its error, {missed}; what is written later adds {later}."
    )


def ask_features(setting: AttributionSetting, dictionary: str) -> AskedAnalysis[LabelledArray]:
    """What each active feature of a dictionary adds."""
    chosen = {"token": setting.token, "position": setting.position, "against": setting.against}
    return ask(
        setting.subject,
        dictionaries.feature_attribution,
        "Reading the prompt",
        dictionary=dictionary,
        **chosen,
    )


def link_unit(setting: AttributionSetting, chosen: str) -> None:
    """Ways to go on with a head or an MLP: switch it off, or look into it on its own page; of a
    dictionary, its page.
    """
    if chosen.startswith(DICTIONARY):
        most = (
            ask_features(setting, chosen.removeprefix(DICTIONARY))
            .value.axes[0]
            .labels[0]
            .replace(" ", ".")
        )
        query = {**frame.shared_state(), "unit": f"{chosen}.{most}"}
        frame.link(FEATURES, f"Open the first one on {FEATURES.title}", query=query)
        return
    part = unit(chosen, setting.subject.lm.model.config)
    page = ATTENTION
    query = {"block": str(part.block), "head": str(part.index)}
    if part.is_mlp:
        strongest = int(np.abs(setting.attribution(chosen).neurons[chosen]).argmax())
        page = NEURONS
        query = {"block": str(part.block), "unit": Unit("mlp", part.block, strongest).name}
    elif setting.subject.kind.has_source:
        query["stack"] = DECODER
    with st.container(horizontal=True, vertical_alignment="center"):
        switch(setting.subject.key, part, key="switch off")
        if not part.crosses and setting.subject.kind.name in page.kinds:
            frame.link(page, f"Open it on {page.title}", query={**frame.shared_state(), **query})
    show_notes(setting.subject, part)


def frozen_parts(config: Config) -> str:
    """The parts that are frozen in a model of this config, and what its embedding holds of other
    tokens, in a few sentences.
    """
    smeared = (
        " “Token embedding” is not only of one token: the model adds a share of the vector of the "
        "token before it."
    )
    before = smeared if config.smear else ""
    kind = RESIDUALS[config.residual]
    after = [
        step
        for step in kind.steps[kind.steps.index("sublayer") :]
        if step not in ("sublayer", "add")
    ]
    reads = (
        "norms are linear but for the number that they divide by; here that number is held "
        "(“frozen”) as it was in this run"
    )
    lost = (
        " In this model every sublayer takes the place of the stream, so only the last one adds "
        "something directly."
    )
    replaced = (lost if "add" not in kind.steps and config.n_layer else "") + before
    if after and config.n_layer:
        final = " and through the final norm" if config.final_norm else ""
        return (
            f"What a part wrote passes through norms in the blocks{final}: {reads}, in every one "
            f"of them.{replaced}"
        )
    if config.final_norm:
        return (
            f"What a part wrote passes through the final norm before it is read: {reads}.{replaced}"
        )
    return (
        "No norm lies between what the parts write and the head, so nothing had to be "
        f"frozen.{replaced}"
    )


def tries(setting: AttributionSetting, attribution: Attribution) -> list[Try]:
    """The suggestions for this logit."""
    if not attribution.adds_up:
        return []
    offers = list(known_offers(setting.subject, query=lambda _: END))
    # The head that speaks most against the token.
    heads = [part for part in attribution.parts if part.name in attribution.sources]
    least = min(heads, key=lambda part: part.value, default=None)
    if least is not None and least.value <= -WORTH * max(
        abs(part.value) for part in attribution.parts
    ):
        shares = attribution.sources[least.name]
        most = int(shares.argmin())
        notice = (
            f"{capitalise_text(setting.say(least))} takes away {brief(abs(least.value))}. What it "
            "reads at "
            f"{in_quotes(setting.read_tokens(least.name)[most])} (position "
            f"{most}{setting.place_of(least.name)}) takes away most: "
            f"{brief(abs(shares[most]))}."
        )
        offers.append(Try("A head that speaks against it", notice, {"part": least.name}))
    # The MLP that adds most.
    if mlps := [part for part in attribution.parts if part.name.endswith(".mlp")]:
        mlp = max(mlps, key=lambda part: abs(part.value))
        neurons = setting.attribution(mlp.name).neurons[mlp.name]
        best = int(abs(neurons).argmax())
        notice = (
            f"{capitalise_text(setting.say(mlp))} adds {format_signed(mlp.value)}, the most of all "
            "MLPs in size. "
            f"Its neuron {best} by itself "
            f"{'adds' if neurons[best] >= 0 else 'takes away'} {brief(abs(neurons[best]))}: see "
            "the other ones of its "
            f"{len(neurons):,} neurons."
        )
        offers.append(Try("Into an MLP", notice, {"part": mlp.name}))
    return offers


def code(setting: AttributionSetting) -> str:
    """The lines of `gptviz` that compute the parts."""
    place = setting.position
    last = len(setting.text.ids) - 1
    chosen = {
        "token": setting.token,
        "position": None if place == last else place,
        "against": setting.against,
    }
    return ask(setting.subject, attribute, "Reading the prompt", **chosen).code(
        "result.sum, result.logit, result.error",
        f"result.labelled()  # [part]: the {setting.sum_name}".replace("\n", "⏎"),
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _attribute_logit(
    key: ModelKey,
    text: PromptRead,
    token: int,
    position: int | None,
    against: int | None,
    neurons_of: str | None,
) -> Attribution:
    return attribute_logit(_stream(key, text, position), token, against, neurons_of)
