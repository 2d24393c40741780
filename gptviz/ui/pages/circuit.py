"""What the Circuit page shows: the graph of one guess, its check, and the node that was opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import streamlit as st
import torch

from gptviz.address_values import one_of
from gptviz.components.circuit_graph import circuit_graph, payload
from gptviz.figures.format import brief, counted, percent, power
from gptviz.interp.circuit import MOST_NODES, Circuit, Edge, Node, circuit
from gptviz.interp.circuit_check import Checked
from gptviz.interp.circuit_check import check as check_of
from gptviz.interp.frozen import means, numbers_of_a_token
from gptviz.memory import FLOAT32
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell import pages
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.subject import Subject, shortened
from gptviz.ui.views import edits
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.text_position import END, position, strip
from gptviz.ui.widgets import addresses, controls, work
from gptviz.ui.widgets.headings import settings
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.tries import Try
from gptviz.ui.widgets.work import Work

# How many of the likeliest tokens are offered.
OFFERED = 50
NOTHING = "nothing"
SHARE = 0.8
# Of the address: the node that is open, and whether the graph is checked.
OPENED, CHECKED = "node", "check"
# What of a graph's core a "Try this" asks for.
CORE = 0.5
# Heads that a sentence names.
MOST_NAMED = 4
# Models of more parameters take longer than a reader waits without a word.
LARGE = 20_000_000
# What the parts of a model wrote at every token may take so many bytes.
MOST_BYTES = 288 * 2**20

HOW = r"""**An edge** (a line) is what the lower box adds to what the upper one reads, in units of the logit: what it wrote into
the stream, times what the logit gains from that by way of the boxes above it. Patterns and norms are *frozen* (kept as they
were in this run), which makes everything between two boxes linear, so sums are exact:

- The boxes below the **logit** and the biases sum to it.
- A **head** reads in three ways. Its *value* edges, $\sum_k \text{pattern}_{qk} \cdot x_k W_V W_O$, sum to what it gives. What it
  gains by its pattern, beside reading all tokens alike, is split over the scores that made the pattern, and each score over those
  who wrote its *key* and its *query*. The split follows the softmax from equal scores to those of this run (integrated
  gradients): a plain gradient is 0 where a head is sure.
- An **MLP** is not linear. Each neuron's $f(x) = r \cdot x$ keeps its ratio $r$ of this run; in a gated MLP each factor gets half
  of the product. Its edges then sum to what it gives; what the MLP would do *without* one of them is another question, which the
  check answers.

With **Beyond the mean**, what counts of a box is what it wrote beyond its mean over the positions of this text; the means count
among the biases. What a box writes everywhere alike says nothing about this place, and in large models it is most of what is
written.

**Which boxes are shown.** Walk from the logit downwards, at every box choosing a line at random in proportion to what it adds,
without sign. The share is the probability that this walk stays among the boxes shown until it ends at a token, a position or a
bias. The graph takes in the lines that carry most, until the share that you ask for is reached.

**The check** runs the model with every part that is not shown, at every position, replaced by its mean over the positions of this
text (mean ablation); nothing is frozen there.

In `gptviz.interp.circuit`, `frozen` and `circuit_check`. Sources: Elhage et al. 2021; Syed et al. 2023 (edge attribution
patching); Kramár et al. 2024 (AtP*); Achtibat et al. 2024 (AttnLRP); Wang et al. 2023 (mean ablation)."""
LIMITS = """The graph is about one guess after one text; another text may use other parts. Lines say what was added in this run,
with patterns and norms as they were, not what would happen without a part: other parts may then do its work. Lines that take away
from what others add are counted by their size, so a share can be large where much cancels. If the check keeps much less than the
share, the boxes left out matter together though each adds little."""


@dataclass(frozen=True)
class Chosen:
    """What the reader asks for.

    Attributes:
        position: after which token the guess is made.
        token: whose logit.
        against: whose logit is subtracted; None for none.
        share: how much is to be traced back.
        beyond_mean: whether only that counts which parts add beyond their means over this text.
    """

    position: int
    token: int
    against: int | None
    share: float
    beyond_mean: bool = True


def with_room(subject: Subject) -> Subject:
    """The subject with as much of its prompt as there is room for: a circuit needs all that every part wrote."""
    most = max(1, MOST_BYTES // (FLOAT32 * numbers_of_a_token(subject.lm.model.config)))
    return shortened(subject, most, "For a circuit all that every part writes at every token is held in memory")


@st.cache_resource(max_entries=24, show_spinner="Finding the circuit")
def found(key: ModelKey, ids: tuple[int, ...], chosen: Chosen) -> Circuit:
    """The circuit of a guess after `ids`."""
    return _find(key, ids, chosen)


def _find(key: ModelKey, ids: tuple[int, ...], chosen: Chosen, watch: Callable[[int, int], None] | None = None) -> Circuit:
    lm = language_model(key)
    text = torch.tensor(ids, device=lm.device)
    usual = means(lm.model, text[None]) if chosen.beyond_mean and len(ids) > 1 else None
    about = chosen.position, chosen.token, chosen.against, chosen.share
    return circuit(lm.model, text, *about, usual=usual, watch=watch)


def is_large(subject: Subject) -> bool:
    """Whether a circuit of this model takes so long that the search is shown, and can be stopped."""
    return sum(parameter.numel() for parameter in subject.lm.model.parameters()) > LARGE


def search(subject: Subject, chosen: Chosen) -> Circuit | None:
    """The circuit asked for; None, with how far the search is, as long as a large model's is not found."""
    if not is_large(subject):
        return found(subject.key, subject.seen, chosen)
    key = ("circuit", subject.key, subject.seen, chosen)

    def begin() -> None:
        def compute(one: Work) -> None:
            one.results["circuit"] = _find(subject.key, subject.seen, chosen, one.report)

        work.begin(key, "Finding the circuit", compute)

    if work.found(key) is None:
        begin()
    going = work.found(key)
    assert going is not None
    work.follow(going, "circuit")
    if going.state in ("stopped", "failed"):
        st.button("Find the circuit", icon=":material/account_tree:", on_click=begin, key="find the circuit")
    result: Circuit | None = going.results.get("circuit")
    return result


@st.cache_resource(max_entries=24, show_spinner="Running the model without all other parts")
def checked(key: ModelKey, ids: tuple[int, ...], chosen: Chosen, _circuit: Circuit) -> Checked:
    """What is left of the answer with everything outside the circuit of `chosen` at its mean over `ids`."""
    lm = language_model(key)
    return check_of(_circuit, lm.model, means(lm.model, torch.tensor([ids], device=lm.device)))


def choose(subject: Subject) -> Chosen | None:
    """The controls: after which token, whose logit, and how much of it; None, with a message, where the model is damaged."""
    text, place = st.columns([3, 1], gap="medium")
    with place:
        at = position(len(subject.seen) - 1)
    with text:
        strip(subject, at)
    logits = logits_after(subject.key, subject.seen, at)
    if not np.isfinite(logits).all():
        name = escaped(subject.key.name)
        st.error(f"{name}: the model's logits are not numbers: its weights are damaged. Choose another model or step above.")
        return None
    offered = _offered(subject, at)
    names = _names(subject, offered)
    notices = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        token = controls.select(
            "Logit of",
            list(names),
            key="token",
            help="Whose logit is taken apart: one of the likeliest next tokens, or the one that really comes next.",
            format_func=names.__getitem__,
            follows=True,
            notices=notices,
        )
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
    return Chosen(at, int(token), None if against == NOTHING else int(against), share, beyond_mean)


def _offered(subject: Subject, at: int) -> list[int]:
    """The likeliest next tokens, the likeliest first, and the one that really comes next."""
    logits = logits_after(subject.key, subject.seen, at)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    really = [subject.seen[at + 1]] if at + 1 < len(subject.seen) else []
    return list(dict.fromkeys([*likely, *really]))


def _names(subject: Subject, tokens: list[int]) -> dict[str, str]:
    """What tokens are called in a list, by their number; those that look alike have it too."""
    labels = [subject.lm.tokenizer.label(token) for token in tokens]
    return {
        str(token): label if labels.count(label) == 1 and label != NOTHING else f"{label} (token {token})"
        for token, label in zip(tokens, labels, strict=True)
    }


def graph(subject: Subject, chosen: Chosen, data: Circuit) -> None:
    """The graph; a click opens a node below it."""
    of = _of(subject, chosen)
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


def _of(subject: Subject, chosen: Chosen) -> str:
    """Tells one graph from another."""
    return blake2b(repr((subject.key, subject.seen, chosen)).encode(), digest_size=8).hexdigest()


def _open(name: str) -> None:
    """Open a node, or close it where it is open."""
    if st.query_params.get(OPENED) == name:
        del st.query_params[OPENED]
    else:
        st.query_params[OPENED] = name


def about(subject: Subject, chosen: Chosen, data: Circuit) -> str:
    """What the graph says, in sentences."""
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


def _answer(subject: Subject, chosen: Chosen) -> str:
    """The number that is taken apart, as Markdown."""
    label = subject.lm.tokenizer.label
    minus = "" if chosen.against is None else f" minus that of “{escaped(label(chosen.against))}”"
    return f"the logit of “{escaped(label(chosen.token))}”{minus}"


def check(subject: Subject, chosen: Chosen, data: Circuit) -> None:
    """The button that checks the graph, or its result."""
    addresses.takes(CHECKED, one_of(["true"]))
    if st.query_params.get(CHECKED) != "true":
        st.button(
            "Check the graph",
            icon=":material/fact_check:",
            key="check the graph",
            on_click=st.query_params.__setitem__,
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


def opened(subject: Subject, chosen: Chosen, data: Circuit) -> None:
    """The node that was opened: what it is, and where to look into it."""
    addresses.takes(OPENED, one_of([node.name for node in data.nodes]))
    name = st.query_params.get(OPENED)
    node = next((node for node in data.nodes if node.name == name), None)
    if node is None:
        st.caption("Choose a box to open it: its pattern, its neurons, or switch it off.")
        return
    label = subject.lm.tokenizer.label
    token = escaped(label(data.ids[node.position]))
    with st.container(border=True):
        title = "The logit" if node.unit is None else node.unit.title[0].upper() + node.unit.title[1:]
        st.markdown(f"**{title}** at position {node.position}, “{token}”: {_said_of(subject, chosen, data, node)}")
        if node.unit is None or node.unit.block is None:
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            for path, text, query in _links(node):
                if path in pages.PAGES:
                    pages.link(pages.PAGES[path], text, query={**pages.shared_state(), **query})
            if node.unit.is_head or node.unit.part == "mlp":
                edits.switch(node.unit, key="switch off the node")


def _links(node: Node) -> list[tuple[str, str, dict[str, str]]]:
    """Pages that look into a node: path, label and what the address asks for."""
    unit, at = node.unit, str(node.position)
    assert unit is not None
    if unit.is_head:
        place = {"block": str(unit.block), "head": str(unit.index), "query": at}
        return [
            ("pages/attention.py", "What it looks at", place),
            ("pages/attribution.py", "What it adds by itself", {"position": at, "part": unit.name}),
        ]
    return [("pages/neurons.py", "Its neurons", {"block": str(unit.block)})]


def _said_of(subject: Subject, chosen: Chosen, data: Circuit, node: Node) -> str:
    """What a node gives and reads, in sentences of Markdown."""
    if node.unit is None:
        means_too = " and means" if chosen.beyond_mean else ""
        return f"it is {brief(data.total)}, of which {brief(data.rest)} comes from biases{means_too}."
    said = [f"it gives {_signed(data.given[node])} to the boxes above it."]
    for kind, words in (("value", "It reads mostly"), ("mlp", "It reads mostly"), ("key", "It looks there mostly because of")):
        best = max((edge for edge in data.edges if edge.target == node and edge.kind == kind), key=_size, default=None)
        if best is not None:
            said.append(f"{words} {_called(subject, data, best.source)} ({_signed(best.value)}).")
    return " ".join(said)


def _size(edge: Edge) -> float:
    return abs(edge.value)


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _called(subject: Subject, data: Circuit, node: Node) -> str:
    """A node in a sentence, as Markdown."""
    assert node.unit is not None
    token = escaped(subject.lm.tokenizer.label(data.ids[node.position]))
    what = {"embed": f"the token “{token}”", "positions": "the position"}.get(node.unit.part)
    return f"{what} at {node.position}" if what else f"what {node.unit.title} wrote at {node.position}, “{token}”"


def code(subject: Subject, chosen: Chosen) -> str:
    """The lines of Python that compute the same graph and its check."""
    against = "" if chosen.against is None else f", against={chosen.against}"
    mean = "" if chosen.beyond_mean else ", beyond_mean=False"
    return f"""import gptviz

lm = {load_call(subject.lm)}
found = lm.circuit({subject.prompt!r}, {chosen.token}, {chosen.position}{against}, share={chosen.share:g}{mean})
numbers = [(edge.source.name, edge.target.name, edge.kind, edge.value) for edge in found.edges]
checked = lm.check_circuit(found)
checked.kept, checked.whole, checked.without"""


def to_try(subject: Subject, chosen: Chosen, data: Circuit) -> list[Try]:
    """What to try with this model, text and graph."""
    return [
        *(offer for contrast in known_contrasts(subject.lm) for offer in _known(subject, contrast)),
        *_the_core(subject, chosen, data),
        *_the_strongest(subject, chosen, data),
        *_the_difference(subject, chosen),
        *_the_example(subject),
    ]


def _known(subject: Subject, contrast: Contrast) -> list[Try]:
    """For a model of sentences: what decides between the right answer and the wrong one, if the model knows the right one."""
    ids = tuple(subject.lm.tokenizer.encode(contrast.clean).ids)
    right, wrong = subject.lm.token(contrast.right), subject.lm.token(contrast.wrong)
    if len(ids) > subject.lm.model.config.context_length:
        return []
    asked = Chosen(len(ids) - 1, right, wrong, CORE)
    logits = logits_after(subject.key, ids, asked.position)
    if logits.argmax() != right or wrong not in np.argsort(-logits, kind="stable")[:OFFERED]:
        return []
    data = found(subject.key, ids, asked)
    heads = [node for node in data.nodes if node.unit is not None and node.unit.is_head]
    best = max(heads, key=lambda node: data.given[node], default=None)
    strongest = (
        ""
        if best is None or best.unit is None
        else f" Of all heads, {best.unit.title} gives most to the boxes above it ({_signed(data.given[best])})."
    )
    notice = (
        f"“{escaped(contrast.clean)}”: {contrast.right} is ahead of {contrast.wrong} by {brief(data.total)}. "
        f"{len(data.nodes)} boxes hold {percent(data.share)} of what decides between them.{strongest}"
    )
    state = {"prompt": contrast.clean, "token": str(right), "against": str(wrong), "share": CORE}
    return [Try(f"{contrast.right} or {contrast.wrong}?", notice, state, END)]


def _the_core(subject: Subject, chosen: Chosen, data: Circuit) -> list[Try]:
    """A smaller graph, where there is one."""
    if chosen.share <= CORE or is_large(subject):
        return []
    core = found(subject.key, subject.seen, replace(chosen, share=CORE))
    if len(core.nodes) >= len(data.nodes):
        return []
    heads = [node.unit.title for node in core.nodes if node.unit is not None and node.unit.is_head]
    named = ", ".join(dict.fromkeys(heads[:MOST_NAMED]))
    among = f" Among them: {named}." if named else " There is no head among them."
    notice = f"{len(core.nodes)} of the {len(data.nodes)} boxes are enough for {percent(core.share)}.{among}"
    return [Try("Its core alone", notice, {"share": CORE})]


def _the_strongest(subject: Subject, chosen: Chosen, data: Circuit) -> list[Try]:
    """The head that gives most."""
    heads = [node for node in data.nodes if node.unit is not None and node.unit.is_head]
    if not heads:
        return []
    best = max(heads, key=lambda node: abs(data.given[node]))
    assert best.unit is not None
    name = best.unit.title[0].upper() + best.unit.title[1:]
    notice = f"{name} at position {best.position}: {_said_of(subject, chosen, data, best)} Open it, and see what it looks at."
    return [Try("The strongest head", notice, query={OPENED: best.name})]


def _the_difference(subject: Subject, chosen: Chosen) -> list[Try]:
    """The likeliest token against the next one."""
    first, second, *_ = [*_offered(subject, chosen.position), None, None]
    if chosen.against is not None or first is None or second is None:
        return []
    logits = logits_after(subject.key, subject.seen, chosen.position)
    one, other = (escaped(subject.lm.tokenizer.label(token)) for token in (first, second))
    notice = (
        f"“{one}” is ahead of “{other}” by {brief(float(logits[first] - logits[second]))}. What parts add to both drops out: "
        "what is left decides between them."
    )
    return [Try("Why not the second one?", notice, {"token": str(first), "against": str(second)})]


def _the_example(subject: Subject) -> list[Try]:
    """For a model of a task: the example, where another text is on screen."""
    if not subject.on_task or subject.prompt == subject.default:
        return []
    notice = "A text of the kind that this model has learned: which of its tokens does the answer come from?"
    return [Try("An example", notice, {"prompt": subject.default}, END)]
