"""The views of the page Circuit: the graph, the check, and the node that is open."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import streamlit as st

from gptviz.components.circuit_graph import circuit_graph, payload
from gptviz.figures.kit.format import brief, counted, percent, power, signed
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit, Node
from gptviz.interp.explaining.circuit_reads import numbers_of_a_token
from gptviz.machine import job
from gptviz.machine.job import Job
from gptviz.machine.memory import FLOAT32
from gptviz.model.costs.effort import MOST, effort
from gptviz.settings.address_values import one_of
from gptviz.ui.pages import PAGES
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject.bar import Subject, shortened
from gptviz.ui.views import edits
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.text_position import position, strip
from gptviz.ui.widgets import addresses, controls, jobs
from gptviz.ui.widgets.headings import settings
from gptviz.ui.widgets.markdown import escaped

from .computed import CircuitChoice, checked, find, found
from .words import code

# How many of the likeliest tokens are offered.
OFFERED = 50
NOTHING = "nothing"
SHARE = 0.8
# Of the address: the node that is open, and whether the graph is checked.
OPENED, CHECKED = "node", "check"
# The most bytes that are kept of what the parts of a model wrote at every token.
MOST_BYTES = 288 * 2**20


def with_room(subject: Subject) -> Subject:
    """The subject with as much of its prompt as there is room for: a circuit needs all that every part wrote."""
    most = max(1, MOST_BYTES // (FLOAT32 * numbers_of_a_token(subject.lm.model.config)))
    return shortened(subject, most, "For a circuit all that every part writes at every token is held in memory")


def is_large(subject: Subject) -> bool:
    """Whether the search for a circuit, about a pass for each of its nodes, takes so long that it is shown and can be stopped."""
    return effort(subject.lm.model, len(subject.seen), MOST_NODES) > MOST


def search(subject: Subject, chosen: CircuitChoice) -> Circuit | None:
    """The chosen circuit, or None, with how far the search is, as long as that of a large model is not found."""
    if not is_large(subject):
        return found(subject.key, subject.seen, chosen)
    key = ("circuit", subject.key, subject.seen, chosen)

    def begin() -> Job[Circuit]:
        return job.begin(key, "Finding the circuit", lambda _: find(subject.key, subject.seen, chosen))

    going = job.found(key) or begin()
    jobs.follow(going, "circuit")
    if going.state in ("stopped", "failed"):
        jobs.begin_button("Find the circuit", begin, icon=":material/account_tree:", key="find the circuit")
    return going.value


def choose(subject: Subject) -> CircuitChoice | None:
    """The controls: after which token, whose logit, and how much of it, or None, with a message, if the model is damaged."""
    text, place, of, more = st.columns([6, 2, 2, 1])
    with place:
        at = position(len(subject.seen) - 1)
    with text:
        strip(subject, at)
    logits = logits_after(subject.key, subject.seen, at)
    if not np.isfinite(logits).all():
        name = escaped(subject.key.name)
        st.error(f"{name}: the model's logits are not numbers: its weights are damaged. Choose another model or step above.")
        return None
    offered = offered_ids(subject, at)
    names = _names(subject, offered)
    notices = st.container()
    with of:
        token = controls.select(
            "Logit of",
            list(names),
            key="token",
            help="Whose logit is taken apart: one of the likeliest next tokens, or the one that really comes next.",
            format_func=names.__getitem__,
            follows=True,
            notices=notices,
        )
    with more, st.popover("More", help="What is taken from this logit, and how much of it is traced."):
        against = controls.select(
            "Minus that of",
            [NOTHING, *(one for one in names if one != token)],
            key="against",
            help="Takes away the logit of another token: what the model adds to both of them drops out, and what decides between "
            "them stays.",
            format_func=lambda one: NOTHING if one == NOTHING else names[one],
            notices=notices,
        )
        share = controls.real(
            "Share of the logit",
            0.3,
            0.95,
            key="share",
            help="How much of the logit is traced back to tokens within the graph: more needs more boxes.",
            default=SHARE,
            step=0.05,
            notices=notices,
        )
        beyond_mean = controls.switch(
            "Beyond the mean",
            key="beyond_mean",
            help="Counts what a part adds beyond its mean over the positions of this text: what it adds everywhere alike says "
            "nothing about this place. Off: all that it adds.",
            default=True,
            notices=notices,
        )
    return CircuitChoice(at, int(token), None if against == NOTHING else int(against), share, beyond_mean)


def offered_ids(subject: Subject, at: int) -> list[int]:
    """The likeliest next tokens, the likeliest first, and the one that really comes next."""
    logits = logits_after(subject.key, subject.seen, at)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    really = [subject.seen[at + 1]] if at + 1 < len(subject.seen) else []
    return list(dict.fromkeys([*likely, *really]))


def _names(subject: Subject, tokens: list[int]) -> dict[str, str]:
    """The names of tokens in a list, by their number; tokens that look alike have it in their name."""
    labels = [subject.lm.tokenizer.label(token) for token in tokens]
    return {
        str(token): label if labels.count(label) == 1 and label != NOTHING else f"{label} (token {token})"
        for token, label in zip(tokens, labels, strict=True)
    }


def graph(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """The graph; a click opens a node below it."""
    of = blake2b(repr((subject.key, subject.seen, chosen)).encode(), digest_size=8).hexdigest()  # tells graphs apart
    label = subject.lm.tokenizer.label
    answer = f"the logit of {label(chosen.token)}"
    if chosen.against is not None:
        answer += f" minus that of {label(chosen.against)}"
    packed = payload(
        data,
        label,
        of=of,
        title=f"The circuit of {answer} after position {chosen.position}",
        model=subject.key.name,
        code=code(subject, chosen),
        opened=st.query_params.get(OPENED, ""),
        spaced=subject.lm.tokenizer.is_spaced,
        settings=settings(),
    )
    circuit_graph(packed, data, of=of, key="circuit graph", on_open=_open)


def _open(name: str) -> None:
    """Open a node, or close it where it is open."""
    addresses.write(OPENED, None if st.query_params.get(OPENED) == name else name)


def about(subject: Subject, chosen: CircuitChoice, data: Circuit) -> str:
    """The graph in sentences."""
    beyond = f", {brief(data.total - data.rest)} of it beyond what the means give" if chosen.beyond_mean else ""
    sentences = [
        f"Of {_answer(subject, chosen)} ({brief(data.total)}{beyond}), this graph of "
        f"{counted(len(data.nodes), 'box', 'boxes')} and {counted(len(data.edges), 'line')} traces "
        f"{percent(data.share)} back to its tokens."
    ]
    if not data.reached:
        sentences.append(
            f"For {percent(chosen.share)} it would need more than {MOST_NODES} boxes: many parts have a small share in the guess."
        )
    sentences.append(f"The sums behind its lines are off by at most {power(data.error)} of what is summed.")
    return " ".join(sentences)


def _answer(subject: Subject, chosen: CircuitChoice) -> str:
    """The number that is taken apart, as Markdown."""
    label = subject.lm.tokenizer.label
    minus = "" if chosen.against is None else f" minus that of “{escaped(label(chosen.against))}”"
    return f"the logit of “{escaped(label(chosen.token))}”{minus}"


def check(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """The button that checks the graph, or its result."""
    if not controls.linked(CHECKED, bool, False, values=one_of(["true"])):
        st.button(
            "Check the graph",
            icon=":material/fact_check:",
            key="check the graph",
            on_click=addresses.write,
            args=(CHECKED, "true"),
            help="Runs the model with everything that is not in the graph replaced by its mean over the positions of this text, "
            "and shows how much of the answer is left.",
        )
        return
    result = checked(subject.key, subject.seen, chosen, data)
    label = subject.lm.tokenizer.label
    likeliest = "still" if result.likeliest == chosen.token else "then"
    with st.container(border=True):
        st.markdown(
            f"**Checked:** with everything outside the graph at its mean over this text, {_answer(subject, chosen)} is "
            f"**{brief(result.kept)}** instead of {brief(result.whole)}; with all parts at their means it is "
            f"{brief(result.without)}. "
            + (f"So the graph keeps **{_kept(result.share)}** of the answer. " if np.isfinite(result.share) else "")
            + f"The likeliest token is {likeliest} “{escaped(label(result.likeliest))}”, and “{escaped(label(chosen.token))}” "
            f"has {percent(result.probability)}."
        )


def _kept(share: float) -> str:
    """A share that may be negative, or more than all, in percent."""
    return f"{100 * share:.3g} %".replace("-", "−")


def opened(subject: Subject, chosen: CircuitChoice, data: Circuit) -> None:
    """The node that was opened: what it is, and where to look into it."""
    nodes = {node.name: node for node in data.nodes}
    node = controls.linked(OPENED, nodes.get, None, values=one_of(nodes))
    if node is None:
        st.caption("Choose a box to open it: its pattern, its neurons, or switch it off.")
        return
    label = subject.lm.tokenizer.label
    token = escaped(label(data.ids[node.position]))
    with st.container(border=True):
        title = "The logit" if node.unit is None else node.unit.title[0].upper() + node.unit.title[1:]
        st.markdown(f"**{title}** at position {node.position}, “{token}”: {said_of(subject, chosen, data, node)}")
        if node.unit is None or node.unit.block is None:
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            for page, text, query in _links(node):
                frame.link(PAGES[page], text, query={**frame.shared_state(), **query})
            if node.unit.is_head or node.unit.part == "mlp":
                edits.switch(node.unit, key="switch off the node")


def _links(node: Node) -> list[tuple[str, str, dict[str, str]]]:
    """Pages that look into a node: name, label and what the address asks for."""
    unit, at = node.unit, str(node.position)
    assert unit is not None
    if unit.is_head:
        place = {"block": str(unit.block), "head": str(unit.index), "query": at}
        return [
            ("attention", "What it looks at", place),
            ("attribution", "What it adds by itself", {"position": at, "part": unit.name}),
        ]
    return [("neurons", "Its neurons", {"block": str(unit.block)})]


def said_of(subject: Subject, chosen: CircuitChoice, data: Circuit, node: Node) -> str:
    """Sentences on what a node gives and reads, as Markdown."""
    if node.unit is None:
        means_too = " and means" if chosen.beyond_mean else ""
        return f"it is {brief(data.total)}, of which {brief(data.rest)} comes from biases{means_too}."
    said = [f"it gives {signed(data.given[node])} to the boxes above it."]
    for kind, words in (("value", "It reads mostly"), ("mlp", "It reads mostly"), ("key", "It looks there mostly because of")):
        best = max(
            (edge for edge in data.edges if edge.target == node and edge.kind == kind),
            key=lambda edge: abs(edge.value),
            default=None,
        )
        if best is not None:
            said.append(f"{words} {_called(subject, data, best.source)} ({signed(best.value)}).")
    return " ".join(said)


def _called(subject: Subject, data: Circuit, node: Node) -> str:
    """A node in a sentence, as Markdown."""
    assert node.unit is not None
    token = escaped(subject.lm.tokenizer.label(data.ids[node.position]))
    what = {"embed": f"the token “{token}”", "positions": "the position"}.get(node.unit.part)
    return f"{what} at {node.position}" if what else f"what {node.unit.title} wrote at {node.position}, “{token}”"
