"""The circuit of one guess: what is asked, the graph, and what the check says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.components.circuit_graph import address, circuit_graph, payload
from gptviz.components.kit import fingerprint
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.figures.kit.format import (
    brief,
    format_count,
    format_signed,
    percent,
    power,
)
from gptviz.interp.explaining.attribution import PartValue
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit, Edge, Node
from gptviz.interp.explaining.circuit_check import Checked
from gptviz.interp.explaining.circuit_reads import numbers_of_a_token
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model import explaining
from gptviz.machine.memory import FLOAT32
from gptviz.model.costs.effort import MOST, effort
from gptviz.settings.address_values import one_of
from gptviz.ui.menu import PAGES
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask, language_model
from gptviz.ui.shell.subject.bar import shorten_prompt
from gptviz.ui.shell.subject.unit_titles import name_with, said_title
from gptviz.ui.views import edits
from gptviz.ui.views.contrasts import known_offers
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.text_position import END, position, strip
from gptviz.ui.views.which_logit import ALONE, LISTED, MINUS, OF, RIVAL, which_logit
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    name_place,
    say_answer,
)
from gptviz.ui.widgets.headings import settings

from .features import PARTS, say_beside_parts, show_links, titles

# What a page asks for by itself: at most so many boxes for so much of the logit, more of them in a
# model of many blocks.
SHARE = 0.8
BOXES = 12
MANY_BLOCKS = 12
MORE_BOXES = 24
# A graph that traces less than this share back names no path.
LITTLE_EXPLAINED = 0.3
# What of the address asks for the same logit on the page Attribution.
SAME_LOGIT = ("position", OF, MINUS)
# How wide the control for the position is, in pixels.
POSITION = 100
FEWEST = 4
SHARES = (0.3, 0.95)
# Of the address: the box that is open, and whether the graph is checked. `LINKED` was the key of
# the open box before the page showed a difference and few boxes: such a link still opens the larger
# graph of the logit, without a difference.
OPENED = "box"
LINKED = "node"
CHECKED = "check"
CLOSED = "none"
# The key of the session's state with the pins and groups of a file.
ARRANGED = "pins and groups of a file"
# The check and the graph disagree where the share of one is less than this part of the other's.
MUCH_LESS = 2 / 3
# The most bytes that are kept of what the parts of a model wrote at every token.
MOST_BYTES = 288 * 2**20


@dataclass(frozen=True)
class CircuitChoice:
    """The logit that is explained, and how much of it."""

    position: int  #: after which token the guess is made
    token: int  #: whose logit
    against: int | None  #: whose logit is subtracted; None: nothing is subtracted
    share: float  #: how much is to be traced back
    #: whether only that counts which parts add beyond their means over this text
    beyond_mean: bool = True
    boxes: int = MOST_NODES  #: the most boxes of the graph
    nodes: str = PARTS  #: whether MLPs are whole, or drawn as features: see `features`


def with_room(subject: Subject) -> Subject:
    """The subject, its prompt cut to what fits in memory: a circuit needs all that every part
    wrote.
    """
    most = max(1, MOST_BYTES // (FLOAT32 * numbers_of_a_token(subject.lm.model.config)))
    return shorten_prompt(
        subject, most, "For a circuit all that every part writes at every token is held in memory"
    )


def choose(
    subject: Subject, text: DeltaGenerator, rest: DeltaGenerator, nodes: str
) -> CircuitChoice | None:
    """The controls: after which token, in the column `text`; whose logit, and how much of it, in
    the column `rest`; the boxes are `nodes`. None, with a message, if the model is damaged.
    """
    # in one line on a phone too, so that the sentence and the graph begin high
    row = rest.container(horizontal=True, vertical_alignment="top")
    place = row.container(width=POSITION)
    of = row.container()
    more = row.container(width="content")
    with place:
        at = position(len(subject.seen) - 1)
    with text:
        strip(subject, at)
    logits = logits_after(subject.key, subject.seen, at)
    if not np.isfinite(logits).all():
        name = escape_markdown(subject.key.name)
        st.error(
            f"{name}: the model's logits are not numbers: its weights or edits are so large that "
            "they overflow. Choose another model or step above, or take its edits away."
        )
        return None
    likely = np.argsort(-logits, kind="stable")[:LISTED].tolist()
    if subject.lm.model.config.n_layer <= MANY_BLOCKS:
        usual_boxes = BOXES
    else:
        usual_boxes = MORE_BOXES
    is_old = LINKED in st.query_params
    at_end = at == len(subject.seen) - 1
    with (
        more,
        st.popover("More", help="What is taken from this logit, and how much of it is traced."),
    ):
        token, against = which_logit(
            subject, likely, of, st.container(), at_end=at_end, minus=ALONE if is_old else RIVAL
        )
        boxes = st.container()
        with st.popover("More"):
            share = controls.decimal_number(
                "Share of the logit",
                *SHARES,
                key="share",
                help="How much of the logit is traced back to tokens within the graph: more needs "
                "more boxes.",
                default=SHARE,
                step=0.05,
            )
            beyond_mean = controls.switch(
                "Beyond the mean",
                key="beyond_mean",
                help="Counts what a part adds beyond its mean over the positions of this text: "
                "what it adds everywhere alike "
                "says nothing about this place. Off: all that it adds.",
                default=True,
            )
        with boxes:
            most = controls.whole_number(
                "Boxes",
                FEWEST,
                MOST_NODES,
                key="boxes",
                help=f"At most this many boxes. Default: {usual_boxes}, or {MOST_NODES} once you "
                "set a share.",
                default=MOST_NODES if is_old or share != SHARE else usual_boxes,
                follows=True,
            )
    return CircuitChoice(at, token, against, share, beyond_mean, most, nodes)


def ask_circuit(subject: Subject, chosen: CircuitChoice) -> AskedAnalysis[Circuit]:
    """The circuit of the chosen guess."""
    return ask(subject, explaining.circuit, "Finding the circuit", **_settings(subject, chosen))


def _settings(subject: Subject, chosen: CircuitChoice) -> dict[str, Any]:
    """The settings of the analysis."""
    settings = asdict(chosen)
    settings["most"] = settings.pop("boxes")
    if chosen.position == len(subject.seen) - 1:
        settings["position"] = None
    return settings


def strongest_part(subject: Subject, chosen: CircuitChoice) -> PartValue:
    """The part that adds most to the logit by itself, as the page Attribution names it."""
    asked = {"token": chosen.token, "position": chosen.position, "against": chosen.against}
    return ask(subject, explaining.attribute, "Reading the prompt", **asked).value.strongest


def shown_edges(subject: Subject, chosen: CircuitChoice, data: Circuit) -> tuple[Edge, ...]:
    """The edges that stand out: those of the main path where the graph explains enough to name it,
    else the edge from the strongest part to the logit.
    """
    if data.share >= LITTLE_EXPLAINED:
        return data.main_edges
    name = strongest_part(subject, chosen).name
    return tuple(
        edge
        for edge in data.edges
        if edge.target.unit is None
        and edge.source.unit is not None
        and edge.source.unit.name == name
    )


def result(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """The graph in a sentence: its main path, or where it explains little, the strongest part with
    the ways to the pages that do not need a path.
    """
    if data.share >= LITTLE_EXPLAINED and data.main_edges:
        last = format_signed(data.main_edges[-1].value)
        say_answer(
            f"The strongest path to this guess: {_path(subject, data)}.",
            f"Its last line adds {last} to {_answer(subject, chosen)}, which is "
            f"{brief(data.total)}.",
        )
        return
    best = strongest_part(subject, chosen)
    title = escape_markdown(name_with(subject.key)(best.name, best.title))
    if best.value > 0:
        adds = f" {capitalise_text(title)} adds most."
    else:
        adds = ""
    with st.container(gap="xsmall"):
        say_answer(
            f"No short path makes this guess: many parts share it.{adds}",
            f"The graph explains only {percent(data.share)}. What each part adds, and which of them "
            "the guess needs:",
        )
        with st.container(horizontal=True, gap="small"):
            query = {name: st.query_params[name] for name in SAME_LOGIT if name in st.query_params}
            frame.link(PAGES["attribution"], query=frame.shared_state() | query)
            frame.link(PAGES["patching"])


def say_share(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """How much of the logit the graph traces back to the tokens."""
    boxes = format_count(len(data.nodes), "box", "boxes")
    lines = format_count(len(data.edges), "line")
    only = "" if data.reached else "only "
    st.caption(
        f"These {boxes} and {lines} trace {only}**{percent(data.share)}** of "
        f"{_answer(subject, chosen)} ({brief(data.total)}) back to the tokens."
    )
    say_beside_parts(subject, _settings(subject, chosen), data, is_large=is_large(subject))


def _path(subject: Subject, data: Circuit) -> str:
    """The main path in words, as Markdown."""
    label = subject.lm.tokenizer.label
    words = [label(i) for i in data.ids]
    steps = list[str]()
    for node in data.main_path:
        place = name_place(words, node.position)
        if node.unit is None:
            steps.append(f"guess {in_quotes(label(data.token))}")
        elif node.unit.part == "embed":
            steps.append(place)
        else:
            steps.append(f"{said_title(subject.key, node.unit)} at {place}")
    return " → ".join(steps)


def describe_graph(chosen: CircuitChoice, data: Circuit) -> str:
    """What else there is to say of the graph."""
    sentences = []
    if chosen.beyond_mean:
        sentences.append(
            "Without what parts give on average over this text the logit is "
            f"{brief(data.total - data.rest)}."
        )
    if not data.reached:
        sentences.append(
            f"For {percent(chosen.share)} it would need more than {chosen.boxes} boxes: many "
            "parts have a small share in it."
        )
    sentences.append(
        f"The sums behind its lines are off by at most {power(data.error)} of what is summed."
    )
    return " ".join(sentences)


def _answer(subject: Subject, chosen: CircuitChoice) -> str:
    """The number that is taken apart, as Markdown."""
    label = subject.lm.tokenizer.label
    if chosen.against is None:
        minus = ""
    else:
        minus = f" minus that of {in_quotes(label(chosen.against))}"
    return f"the logit of {in_quotes(label(chosen.token))}{minus}"


def search(subject: Subject, asked: AskedAnalysis[Circuit]) -> Circuit | None:
    """The circuit, or None, with how far the search is, as long as that of a large model is not
    found.
    """
    if is_large(subject):
        return asked.follow_value("Find the circuit")
    return asked.value


def is_large(subject: Subject) -> bool:
    """Whether the search for a circuit, about a pass for each of its nodes, takes so long that it
    is shown and can be stopped.
    """
    return effort(subject.lm.model, len(subject.seen), MOST_NODES) > MOST


def check(subject: Subject, asked: AskedAnalysis[Circuit]) -> Checked | None:
    """The check of the graph, at once for a small model, else once it is asked for; None until
    then.
    """
    is_asked = controls.linked_choice(CHECKED, bool, False, values=one_of(["true"]))
    if is_asked or not is_large(subject):
        return check_answer(asked)
    return None


@jobs.resource("Running the model without all other parts", max_entries=24)
def check_answer(asked: AskedAnalysis[Circuit]) -> Checked:
    """The answer that is left with everything outside the circuit at its mean over the text."""
    return language_model(asked.key).check_circuit(asked.value)


def disagreement(data: Circuit, result: Checked | None) -> str | None:
    """A sentence for where the check keeps much less of the answer than the graph traces back."""
    # NaN where there is nothing to keep
    if result is None or not result.share < MUCH_LESS * data.share:
        return None
    if result.share >= 0:
        much = "only"
    else:
        much = "even less than without the graph:"
    return (
        f"**The check disagrees:** this graph traces {percent(data.share)} back to tokens, but "
        "with everything else at its mean "
        f"{much} {_format_share(result.share)} of the answer is left. What is not in the graph "
        "matters "
        "more than its lines say."
    )


def describe_random(data: Circuit, result: Checked) -> str:
    """A sentence on what as many random edges as the graph has keep of the answer."""
    random = result.random
    lines = format_count(len(data.edges), "random line")
    return (
        f"{lines} instead keep **{_format_share(random.median)}** (the median of "
        f"{len(result.kept_at_random)} draws, from {_format_share(random.low)} to "
        f"{_format_share(random.high)})."
    )


def say_random(data: Circuit, result: Checked | None) -> None:
    """What the graph keeps alone, and what as many random lines keep, once it was checked."""
    if result is not None and np.isfinite(result.share):
        st.caption(
            f"Alone it keeps **{_format_share(result.share)}** of the answer; "
            f"{describe_random(data, result)}"
        )


def _format_share(share: float) -> str:
    """A share that may be negative, or more than all, in percent."""
    return f"{'−' if share < 0 else ''}{power(100 * abs(share))} %"


def graph(
    subject: Subject,
    chosen: CircuitChoice,
    asked: AskedAnalysis[Circuit],
    choices: Mapping[str, Any],
) -> None:
    """The graph; a click opens a node below it. `choices` are what a file with it says of the
    page.
    """
    data = asked.value
    of = fingerprint(asked)
    label = subject.lm.tokenizer.label
    answer = f"the logit of {label(chosen.token)}"
    if chosen.against is not None:
        answer += f" minus that of {label(chosen.against)}"
    units = ["embed", "positions", *(unit.name for unit in heads_and_mlps(subject.lm.model.config))]
    named = titles(subject, data)
    units += sorted({unit.name for unit in named} - {*units})
    addresses.takes_all(address(units, len(subject.seen)))
    command: ViewCommand = st.session_state.get(ARRANGED, NO_COMMAND)
    packed = payload(
        data,
        label,
        of=of,
        title=f"The circuit of {answer} after position {chosen.position}",
        model=subject.key.name,
        code=asked.code(
            "numbers = [(edge.source.name, edge.target.name, edge.kind, edge.value) for edge in "
            "result.edges]",
            "checked = lm.check_circuit(result)",
            "checked.kept, checked.whole, checked.without",
            "checked.share, checked.random  # what the graph keeps, and as many random edges",
        ),
        opened=st.query_params.get(OPENED, st.query_params.get(LINKED, "")),
        spaced=subject.lm.tokenizer.is_spaced,
        settings=settings(),
        units=units,
        titles=named,
        choices=choices,
        command=command,
        main=shown_edges(subject, chosen, data),
    )
    circuit_graph(packed, data, of=of, key="circuit graph", on_open=_open)


def _open(name: str) -> None:
    """Open a box, or close it where it is open."""
    closed = CLOSED if LINKED in st.query_params else None
    now = st.query_params.get(OPENED, st.query_params.get(LINKED))
    addresses.write(OPENED, closed if now == name else name)


def result_of(
    subject: Subject, chosen: CircuitChoice, data: Circuit, result: Checked | None
) -> None:
    """The result of the check, or the button that asks for it."""
    if result is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Check the graph",
                icon=":material/fact_check:",
                key="check the graph",
                on_click=addresses.write,
                args=(CHECKED, "true"),
                help="Runs the model with everything that is not in the graph replaced by its mean "
                "over the positions of this "
                "text, and shows how much of the answer is left.",
            )
            st.caption(
                "Not checked yet: the share says what the lines add up to, not what the model "
                "does without the rest."
            )
        return
    label = subject.lm.tokenizer.label
    more = (
        f"That is much more than the {percent(data.share)} that its lines trace back to tokens: "
        "its boxes also read what parts "
        "outside the graph write, and of what those write the mean is enough for much of the "
        "answer. "
    )
    likeliest = "still" if result.likeliest == chosen.token else "then"
    with st.container(border=True):
        st.markdown(
            "**Checked:** with everything outside the graph at its mean over this text, "
            f"{_answer(subject, chosen)} is "
            f"**{brief(result.kept)}** instead of {brief(result.whole)}; with all parts at their "
            "means it is "
            f"{brief(result.without)}. "
            + (
                f"So the graph keeps **{_format_share(result.share)}** of the answer; "
                f"{describe_random(data, result)} "
                if np.isfinite(result.share)
                else ""
            )
            + (more if data.share < MUCH_LESS * result.share else "")
            + f"The likeliest token is {likeliest} {in_quotes(label(result.likeliest))}, and "
            f"{in_quotes(label(chosen.token))} "
            f"has {percent(result.probability)}."
        )


def show_node(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """The node that was opened: what it is, and where to look into it."""
    nodes = {node.name: node for node in data.nodes}
    before = controls.linked_choice(LINKED, nodes.get, None, values=one_of(nodes))
    node = controls.linked_choice(
        OPENED,
        nodes.get,
        before,
        values=one_of([*nodes, *([CLOSED] if LINKED in st.query_params else [])]),
    )
    if node is None:
        st.caption("Choose a box to open it: its pattern, its neurons, or switch it off.")
        return
    label = subject.lm.tokenizer.label
    token = escape_markdown(label(data.ids[node.position]))
    with st.container(border=True):
        if node.unit is None:
            title = "The logit"
        else:
            title = capitalise_text(said_title(subject.key, node.unit))
        st.markdown(
            f"**{title}** at position {node.position}, “{token}”: "
            f"{said_of(subject, chosen, data, node)}"
        )
        if node.unit is None:
            return
        show_links(subject, node.unit)
        if node.unit.block is None:
            if node.unit.part == "dictionary":
                edits.switch(subject.key, node.unit, key="switch off the node")
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            state = frame.shared_state() | {"block": str(node.unit.block)}
            at = str(node.position)
            if node.unit.is_head:
                query = state | {"head": str(node.unit.index), "query": at}
                frame.link(PAGES["attention"], "What it looks at", query=query)
                query = frame.shared_state() | {"position": at, "part": node.unit.name}
                frame.link(PAGES["attribution"], "What it adds by itself", query=query)
            else:
                frame.link(PAGES["neurons"], "Its neurons", query=state)
            if node.unit.is_head or node.unit.is_mlp:
                edits.switch(subject.key, node.unit, key="switch off the node")


def said_of(subject: Subject, chosen: CircuitChoice, data: Circuit, node: Node) -> str:
    """Sentences on what a node gives and reads, as Markdown."""
    if node.unit is None:
        means_too = " and means" if chosen.beyond_mean else ""
        return (
            f"it is {brief(data.total)}, of which {brief(data.rest)} comes from biases{means_too}."
        )
    label = subject.lm.tokenizer.label
    if chosen.against is None:
        minus = ""
    else:
        minus = f" − {escape_markdown(label(chosen.against))}"
    said = [
        f"it gives {format_signed(data.given[node])} of "
        f"{escape_markdown(label(chosen.token))}{minus} to the "
        "boxes above it."
    ]
    for kind, words in (
        ("value", "It reads mostly"),
        ("mlp", "It reads mostly"),
        ("key", "It looks there mostly because of"),
    ):
        best = max(
            (edge for edge in data.edges if edge.target == node and edge.kind == kind),
            key=lambda edge: abs(edge.value),
            default=None,
        )
        if best is not None:
            said.append(
                f"{words} {_name_node(subject, data, best.source)} ({format_signed(best.value)})."
            )
    return " ".join(said)


def _name_node(subject: Subject, data: Circuit, node: Node) -> str:
    """A node in a sentence, as Markdown."""
    assert node.unit is not None
    token = escape_markdown(subject.lm.tokenizer.label(data.ids[node.position]))
    what = {"embed": f"the token “{token}”", "positions": "the position"}.get(node.unit.part)
    if what:
        return f"{what} at {node.position}"
    return f"what {said_title(subject.key, node.unit)} wrote at {node.position}, “{token}”"


def tries(subject: Subject, chosen: CircuitChoice, data: Circuit) -> list[Try]:
    """The suggestions for this model, text and graph."""
    offers = list(known_offers(subject, query=lambda _: END))
    if not offers and subject.on_task and subject.prompt != subject.default:
        notice = (
            "A text of the kind that this model has learned: which of its tokens does the answer "
            "come from?"
        )
        offers.append(Try("An example", notice, {"prompt": subject.default}, END))
    # The head that gives most.
    if heads := [
        (node, node.unit) for node in data.nodes if node.unit is not None and node.unit.is_head
    ]:
        best, unit = max(heads, key=lambda head: abs(data.given[head[0]]))
        said = (
            f"{capitalise_text(said_title(subject.key, unit))} at position {best.position}: "
            f"{said_of(subject, chosen, data, best)}"
        )
        offers.append(
            Try(
                "The strongest head",
                f"{said} Open it, and see what it looks at.",
                query={OPENED: best.name},
            )
        )
    return offers
