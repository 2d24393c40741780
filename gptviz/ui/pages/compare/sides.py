"""What is compared: side A, side B, and what they are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from inspect import signature
from typing import Any, TypeVar, cast

import streamlit as st

from gptviz.figures.kit.format import format_count, join_words
from gptviz.interp import compare
from gptviz.interp.changing.edits import fitting
from gptviz.interp.compare import Side
from gptviz.interp.reading.read_once import ReadOnce, read_once
from gptviz.language_model.units import repeats_of
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject import (
    ModelKey,
    Subject,
    edits,
    kinds,
    language_model,
    load_call,
    model_key,
    scrubber,
)
from gptviz.ui.shell.subject.bar import longest_prompt, read_prompt
from gptviz.ui.views.contrasts import suggestion
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls, escape_markdown, in_quotes, jobs

SAME = "the same model"
MODEL = "b_model"
STEP = "b_step"
PROMPT = "b_prompt"
EDITS = "b_edits"
LONGEST_EDITS = 2_000
# The characters that are quoted at most of what differs in a prompt.
MOST_QUOTED = 30

Key = tuple[ModelKey, tuple[int, ...], ModelKey, tuple[int, ...]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sides:
    """The two sides: `a` is the model and prompt of all pages, `b` the other ones."""

    a: Subject
    b: Subject

    @property
    def key(self) -> Key:
        """All that cached functions need to know of both: the model and the tokens of A, then of
        B.
        """
        return self.a.key, self.a.seen, self.b.key, self.b.seen

    @property
    def are_equal(self) -> bool:
        """Whether both are the same model with the same text: then every difference is 0."""
        return self.key[:2] == self.key[2:]


def bar_of_b(a: Subject) -> Sides:
    """The controls of B, folded. Stops the page where B's model cannot be opened.

    Args:
        a: the model and prompt of all pages.
    """
    with st.expander("**B**: compared with A", key="side-b"):
        names = [name for name in kinds.models_of("decoder") if name != a.key.name]
        hint = (
            "The model of A, or any other decoder. Unless one is chosen it is the base of a LoRA "
            "adapter, and for a model as it "
            "was saved the one that learned the same task from other data. Where their "
            "vocabularies differ, tokens are matched "
            "by what they look like."
        )
        is_plain = not a.key.edits and a.key.step is None and STEP not in st.query_params
        usual = twin(a.key.name) if is_plain else None
        if a.lm.base is not None:
            usual = a.lm.base.name
        usual = usual if usual in names else SAME
        chosen = controls.select(
            "B’s model", [SAME, *names], key=MODEL, default=usual, follows=True, help=hint
        )
        name = a.key.name if chosen == SAME else chosen
        listed = _edits()
        # The step and the prompt that are there where none is chosen depend on whether something
        # else is chosen.
        differs = name != a.key.name or listed != a.key.edits
        step = _step(
            name, a, differs or bool(st.session_state.get(PROMPT, st.query_params.get(PROMPT)))
        )
        key = _key(name, step, listed, a)
        instead = a.prompt if differs or key != a.key else other_prompt(a)
        prompt = _prompt(instead) or instead
        if prompt == instead != a.prompt:
            st.caption(
                "B reads the prompt shown in grey: another than A, since nothing else is chosen "
                "for B."
            )
        swapping = st.container()
    with controls.notice_place():
        sides = Sides(a, read_prompt(key, language_model(key), prompt, a.default))
    with swapping:
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            key="swap sides",
            on_click=swap,
            args=(sides,),
            help="B takes the place of A, and A that of B: every difference changes its sign.",
        )
    return sides


def twin(name: str) -> str | None:
    """The model that was begun together with this one, or else another one that has learned the
    same task with other settings.
    """
    own = checkpoints.read_card(checkpoints.find(name))
    names = [one for one in kinds.models_of("decoder") if one != name]
    if own.twin in names:
        return own.twin
    cards = ((one, checkpoints.read_card(checkpoints.find(one))) for one in names)
    return next(
        (
            one
            for one, card in cards
            if card.task == own.task is not None and card.source != own.source
        ),
        None,
    )


def _edits() -> tuple[str, ...]:
    typed = controls.text(
        "B’s edits",
        key=EDITS,
        help="What is switched off or replaced in B: names of its parts, separated by commas, such "
        "as "
        "`blocks.1.attention.head.3` or `blocks.0.mlp=mean`; or weights with fewer bits: "
        "`weights=4bit.g32`. The edits of A are "
        "in its own bar.",
        longest=LONGEST_EDITS,
        placeholder="none",
    )
    return tuple(dict.fromkeys(text.strip() for text in typed.split(",") if text.strip()))


def _step(name: str, a: Subject, differs: bool) -> int | None:
    """The step of training that B is shown at; where none is chosen, an earlier one where B is like
    A in all else.
    """
    known = scrubber.steps(name)
    if not known:
        return None
    options = [*map(str, known), scrubber.LAST]
    # As a rule the steps of snapshots double: at two thirds of them a model guesses, but not yet as
    # it does in the end. At step 0 no token is likelier than another.
    usual = (
        scrubber.LAST
        if differs or a.key.step is not None
        else options[round(2 * (len(known) - 1) / 3)]
    )
    hint = "How far B was trained: a snapshot by its step, or the model as it was saved last."
    chosen = controls.notch(
        "B’s training step", options, key=STEP, default=usual, follows=True, help=hint
    )
    if chosen == scrubber.LAST:
        return None
    return int(chosen)


def _key(name: str, step: int | None, listed: tuple[str, ...], a: Subject) -> ModelKey:
    """The model of B with its edits. Stops the page where it cannot be opened."""
    try:
        key = model_key(name, a.key.device, step, a.key.precision)
        fitted = fitting(listed, language_model(key).model)
        edits.warn_of_refused(name, fitted)
        key = edits.with_edits(key, fitted, edits.reference_text(a.default))
        language_model(key)
    except (checkpoints.CheckpointError, MemoryError, RuntimeError) as error:
        st.error(
            f"{escape_markdown(str(error))}. Choose another model for B."
            if str(error)
            else "There is not enough memory for B."
        )
        st.stop()
    return key


def other_prompt(a: Subject) -> str:
    """The prompt that Patching suggests too, with another answer, or the same without its last
    character if there is none.
    """
    return suggestion(a) or a.prompt[:-1] or a.prompt


def _prompt(instead: str) -> str:
    return controls.text(
        "B’s prompt",
        key=PROMPT,
        help="What B reads. Empty: A’s prompt, or, if B would then equal A, A’s prompt with one "
        "token changed (in grey).",
        longest=longest_prompt(),
        height=68,
        placeholder=instead[:2_000],
    )


def swap(sides: Sides) -> None:
    """Let B be A, and A be B."""
    a = sides.a
    b = sides.b
    state = st.session_state
    state["model"] = b.key.name
    state[MODEL] = SAME if a.key.name == b.key.name else a.key.name
    state["prompt"], state[PROMPT] = b.prompt, a.prompt
    for key, side in (("step", b), (STEP, a)):
        if scrubber.steps(side.key.name):
            state[key] = scrubber.LAST if side.key.step is None else str(side.key.step)
    edits.put(b.key.edits)
    state[EDITS] = ", ".join(a.key.edits)


def side(key: ModelKey, ids: tuple[int, ...]) -> Side:
    """A side as the computations take it."""
    lm = language_model(key)
    return Side(lm.model, ids, tokens(key).labels, key.name, repeats_of(lm))


def ask_both(key: Key, analysis: Callable[..., Result], **settings: Any) -> tuple[Result, str]:
    """An analysis of both sides, one of `gptviz.interp.compare`, with its call in Python. All
    sessions share the result: it is read-only.

    Raises:
        ValueError: as in the analysis.
    """
    usual = signature(analysis).parameters
    chosen = tuple(
        (name, value) for name, value in settings.items() if value != usual[name].default
    )
    call = (
        f"compare.{analysis.__name__}(a, "
        f"b{''.join(f', {name}={value!r}' for name, value in chosen)})"
    )
    return cast(Result, _compare_sides(key, analysis.__name__, chosen)), call


@jobs.resource("Comparing", max_entries=64)
def _compare_sides(key: Key, analysis: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    return getattr(compare, analysis)(side(*key[:2]), side(*key[2:]), **dict(settings))


def describe_sides(sides: Sides) -> str:
    """A and B by name, and in what they differ, as Markdown."""
    a = sides.a
    b = sides.b
    if sides.are_equal:
        return "A and B are the same model with the same text: every difference is 0."
    differ = [
        what
        for what, first, second in (
            ("the model", a.key.name, b.key.name),
            ("the step of training", a.key.step, b.key.step),
            ("the edits", a.key.edits, b.key.edits),
            ("the prompt", a.prompt, b.prompt),
        )
        if first != second
    ]
    what = join_words(differ or ["what is read of the prompt"])
    said = f"**A**: {_name_side(a)} · **B**: {_name_side(b)}. They differ in {what}."
    if (replaced := _replaced_words(a.prompt, b.prompt)) is not None:
        one, other = map(in_quotes, replaced)
        said += f" B reads {other} where A reads {one}."
    return said


def _replaced_words(one: str, other: str) -> tuple[str, str] | None:
    """The first words of one prompt that the other has others for, and those; None without such."""
    words = one.split()
    others = other.split()
    for tag, start, stop, begin, end in SequenceMatcher(None, words, others).get_opcodes():
        if tag == "replace":
            replaced = " ".join(words[start:stop])
            instead = " ".join(others[begin:end])
            return replaced[:MOST_QUOTED], instead[:MOST_QUOTED]
    return None


def short_names(sides: Sides) -> tuple[str, str]:
    """A and B with what is not the same in both: "A (at its last step)", "B (after 256 steps)"."""
    a = sides.a
    b = sides.b
    apart = list[tuple[str, str]]()
    if a.key.name != b.key.name:
        apart.append((a.key.title, b.key.title))
    if a.key.step != b.key.step:
        apart.append((_name_step(a), _name_step(b)))
    if a.key.edits != b.key.edits:
        apart.append((_name_edits(a), _name_edits(b)))
    if (replaced := _replaced_words(a.prompt, b.prompt)) is not None:
        one, other = replaced
        apart.append((f"with “{one}”", f"with “{other}”"))
    if not apart:
        return "A", "B"
    own, others = zip(*apart, strict=True)
    return f"A ({', '.join(filter(None, own))})", f"B ({', '.join(filter(None, others))})"


def _name_edits(side: Subject) -> str:
    """Whether a side is edited, in words."""
    return "edited" if side.key.edits else "not edited"


def code(sides: Sides, call: str, *, of_models: bool = False) -> str:
    """The lines of `gptviz` that compute the same numbers, the last of which is their table.

    Args:
        call: the call of `gptviz.interp.compare` that computes them from `a` and `b`: two sides, or
            two models.
        of_models: whether they are two models.
    """
    lines = ["import gptviz", "from gptviz.interp import compare", ""]
    for name, one in (("a", sides.a), ("b", sides.b)):
        lines.append(
            f"{name} = {load_call(one.lm)}" + ("" if of_models else f".side({one.prompt!r})")
        )
    return "\n".join([*lines, f"result = {call}", "result.table()  # A, B and B − A"])


def _name_side(side: Subject) -> str:
    return escape_markdown(f"{side.key.title} {_name_step(side)}".rstrip())


def _name_step(side: Subject) -> str:
    """How far a side was trained, in words; empty for a model without snapshots."""
    if not scrubber.steps(side.key.name):
        return ""
    if side.key.step is None:
        return "at its last step"
    return f"after {format_count(side.key.step, 'step')}"


# Shared by all sessions: read-only. All that the page asks of the text of A is computed in one pass
# over it.
@st.cache_resource(max_entries=16, show_spinner="Reading the text")
def own_text(key: ModelKey, ids: tuple[int, ...]) -> ReadOnce:
    """All that the page needs of the text of A."""
    return read_once(language_model(key).model, ids)
