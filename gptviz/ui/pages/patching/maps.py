"""How much of the answer each piece of the computation brings back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from gptviz.figures.changing.patched import draw_restored
from gptviz.figures.kit.format import format_count, format_signed
from gptviz.figures.units.neurons import promoted
from gptviz.interp.changing.attribution_patching import CHECKED, STEPS, TRUSTED, Preview, preview
from gptviz.interp.changing.corrupting import likeliest_answers
from gptviz.interp.changing.patchable import Quantity, quantities
from gptviz.interp.changing.patched_features import MOST_FEATURES
from gptviz.interp.changing.patching import SHARE, Patched, PromptPair, n_patches, patch
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import changing
from gptviz.machine import job, progress
from gptviz.machine.job import Job, Stage
from gptviz.model import Config
from gptviz.model.costs.effort import MUCH, effort
from gptviz.settings.address_values import Values
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.features import PAGE as FEATURES
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, ask, language_model
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    name_place,
    press_button,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.picking import pick

from .prompts import CORRUPTED, LIKELIEST, RIGHT, WRONG, Prompts, verdict

# The parameter of the address that names the cell that is explained: quantity, block and place.
CELL = "cell"
MOST_TOLD = 3
FEATURES_SHOWN = 10
COMPUTE = "Compute exactly"
BY_POSITION = ("resid_pre", "attention.out", "mlp.out")
BY_HEAD = ("attention.z", "attention.pattern", "attention.q", "attention.k", "attention.v")
# Seconds that a page waits for what should take a moment, where the machine has much else to do.
LONGEST = 10.0
# For models that read text by characters, and for sums: a title, a clean prompt, a corrupted one,
# and what to look for.
TEXTS = (
    (
        "Which duke?",
        "DUKE VINCENTIO:\nNo.\n\nLUCIO:\nYes.\n\nDUKE ",
        "DUKE OF EXETER:\nNo.\n\nLUCIO:\nYes.\n\nDUKE ",
        "The name follows only from the first line. See in which block what stood there reaches "
        "the last position.",
    ),
    (
        "To be, or not to",
        "To be, or not to b",
        "To go, or not to g",
        "The word “be” and the last letter differ. See which of them the answer comes from.",
    ),
)
SUMS = (
    (
        "A digit of the ones",
        "123+456=",
        "123+451=",
        "The answer begins with its ones: the last digits of both numbers decide. See in which "
        "block they are read.",
    ),
    (
        "A carry",
        "128+456=4",
        "121+456=7",
        "In both sums the tens are 2 + 5, but only in the first do the ones carry. See where the "
        "carry comes from: from "
        "the digit, or from the first digit of the answer.",
    ),
)


# A part is said to carry the answer if its patch brings at least this share of it back.
CARRIES = 0.5


class PatchCell(NamedTuple):
    """A cell of a heatmap."""

    what: str
    block: int
    place: int

    @property
    def address(self) -> str:
        """As the address has it."""
        return f"{self.what}/{self.block}/{self.place}"


class Maps(NamedTuple):
    """What patches really do, by the name of the quantity, as far as that is computed; else also
    the previews of all.
    """

    exact: dict[str, Patched]
    guessed: dict[str, Preview]

    def best_values(self, name: str) -> Patched:
        """The exact values if they are computed, or else the preview."""
        if name in self.exact:
            return self.exact[name]
        return self.guessed[name]

    def is_exact(self, name: str, block: int, place: int) -> bool:
        """Whether the value of a cell is exact, in a preview too."""
        return name in self.exact or bool(self.guessed[name].known[block, place])

    @property
    def shown_maps(self) -> dict[str, Patched]:
        """What is drawn: no preview that disagrees with the patches that were computed to check
        it.
        """
        names = dict.fromkeys((*self.guessed, *self.exact))
        return {
            name: self.best_values(name)
            for name in names
            if name in self.exact or self.guessed[name].is_trusted
        }


def maps(subject: Subject, prompts: Prompts) -> Maps:
    """What is computed of the patches, and a preview of the others; with the button that computes
    them, and how far it is.
    """
    begun = exact_map(subject.key, prompts.pair)
    stage = None if begun is None else begun.stage
    results = (None if begun is None else begun.value) or {}
    names = [
        one.name for one in shown_quantities(subject.lm.model.config, (*BY_POSITION, *BY_HEAD))
    ]
    if len(results) == len(names):
        guessed = {}
    else:
        guessed = previews(subject.key, prompts.pair)
    _state(subject, prompts, begun, stage, len(names), len(results))
    exact = {name: results[name].labelled(prompts.tokens) for name in names if name in results}
    return Maps(exact, {name: one.labelled(prompts.tokens) for name, one in guessed.items()})


def exact_map(key: ModelKey, pair: PromptPair) -> Job[dict[str, Patched]] | None:
    """The job that computes what patches really do, by quantity, if it was begun; its value grows.
    If it takes only a moment, it is begun and waited for.
    """
    computing = job.find_job(("patching", key, pair))
    if (
        computing is None
        and effort(language_model(key).model, len(pair.clean), patches(key, pair)) <= MUCH
    ):
        computing = begin(key, pair)
        computing.wait(LONGEST)
    return computing


def patches(key: ModelKey, pair: PromptPair) -> int:
    """How many patches there are to compute."""
    config = language_model(key).model.config
    return sum(
        n_patches(config, pair, quantity.name)
        for quantity in shown_quantities(config, (*BY_HEAD, *BY_POSITION))
    )


def shown_quantities(config: Config, names: tuple[str, ...]) -> list[Quantity]:
    """Those of the quantities `names` that the model has."""
    has = {quantity.name: quantity for quantity in quantities(config)}
    return [has[name] for name in names if name in has]


def begin(key: ModelKey, pair: PromptPair) -> Job[dict[str, Patched]]:
    """Begin to compute every patch of every quantity on the page, heads first: they are fewest."""
    model = language_model(key).model
    chosen = shown_quantities(model.config, (*BY_HEAD, *BY_POSITION))
    counts = [n_patches(model.config, pair, quantity.name) for quantity in chosen]

    def compute() -> dict[str, Patched]:
        known: dict[str, Patched] = {}
        before = 0
        unpatched = None
        for quantity, number in zip(chosen, counts, strict=True):
            with progress.part(before, sum(counts), number, doing=quantity.title):
                found = patch(model, pair, quantity.name, unpatched=unpatched)
            known = known | {quantity.name: found}
            progress.show_so_far(known)
            unpatched = found.clean, found.corrupted
            before += number
        return known

    return job.begin(("patching", key, pair), "Patching", compute)


@jobs.resource("Guessing what patches do", max_entries=8)
def previews(key: ModelKey, pair: PromptPair) -> dict[str, Preview]:
    """By quantity, what attribution patching guesses; read-only, shared by all sessions."""
    model = language_model(key).model
    return preview(
        model,
        pair,
        [quantity.name for quantity in shown_quantities(model.config, (*BY_POSITION, *BY_HEAD))],
    )


def _state(
    subject: Subject,
    prompts: Prompts,
    begun: Job[dict[str, Patched]] | None,
    stage: Stage | None,
    of: int,
    ready: int,
) -> None:
    """Whether heatmaps are a preview or exact, with the button or the bar."""
    if ready == of:
        verdict(prompts)
        st.caption(":material/check: All heatmaps are exact: every patch was computed.")
        return
    button, says = st.columns([3, 7], vertical_alignment="center")
    if ready:
        exact = f"{ready} of {of} heatmaps are exact; the others are"
    else:
        exact = "These heatmaps are"
    with says.container(gap="xsmall"):
        verdict(prompts)
        st.caption(
            f"{exact} a **preview**, guessed from the slopes of {STEPS} passes (attribution "
            f"patching). Of each, up to {CHECKED} "
            "patches were computed: how well it agrees with them stands below it."
        )
        if subject.lm.model.config.experts:
            st.caption(
                "This model is a mixture of experts: a patch may make a router choose other "
                "experts, and a slope does not show "
                "that. So the preview of a whole sublayer may differ from the sum of the previews "
                "of its parts."
            )
    if stage is None or not stage.is_active:
        many = patches(subject.key, prompts.pair)
        hint = (
            f"Computes each of the {many:,} patches by itself. It goes on if you reload or leave "
            "the page."
        )
        with button:
            if press_button(
                COMPUTE,
                key="compute patches",
                type="primary",
                icon=":material/calculate:",
                help=hint,
            ):
                begin(subject.key, prompts.pair)
                st.rerun()
    if begun is not None:
        jobs.follow(begun, "patches", stage)


def maps_by_position(subject: Subject, prompts: Prompts, heatmaps: Maps) -> None:
    """The row of heatmaps by position."""
    first = first_shown(subject, prompts)
    best = telling_cell(heatmaps, prompts)
    with st.container(gap="xsmall"):  # so that the maps begin high
        if best is not None:
            say_answer(*which_carries(heatmaps, best, prompts))
        _row(
            shown_quantities(subject.lm.model.config, BY_POSITION),
            prompts,
            heatmaps,
            chosen_cell(heatmaps) or best,
            first,
        )
    if (stream := heatmaps.shown_maps.get(BY_POSITION[0])) is not None:
        st.caption(where_the_answer_is(stream, prompts.tokens))
    if first:
        if first > 1:
            places = f"positions 0 to {first - 1}"
        else:
            places = "position 0"
        st.caption(
            f"Left out: {places}, where both prompts are the same, so that a patch changes nothing."
        )


def telling_cell(heatmaps: Maps, prompts: Prompts) -> PatchCell | None:
    """The cell of a sublayer that the page speaks of: the attention that brings the answer to where
    it stays, as the map of the stream shows; else the sublayer at one position whose patch restores
    most. In block 0, where the prompts differ, a sublayer has just read another token: such a cell
    says nothing new. None where no such map is drawn.
    """
    attention, mlp = BY_POSITION[1:]
    if attention in heatmaps.shown_maps and (move := _last_move(heatmaps)) is not None:
        return PatchCell(attention, move.block, move.after)
    cells = [
        (share, PatchCell(name, block, place))
        for name in (attention, mlp)
        if name in heatmaps.shown_maps
        for block, places in enumerate(heatmaps.shown_maps[name].shares.tolist())
        for place, share in enumerate(places)
        if block or place not in prompts.differing_positions or len(places) == 1
    ]
    return max(cells, key=lambda cell: cell[0])[1] if cells else None


class _Move(NamedTuple):
    """The block that brings the answer to where it stays."""

    block: int
    before: int  #: where it was
    after: int  #: where it stays
    is_only: bool  #: whether it was nowhere else before


def _last_move(heatmaps: Maps) -> _Move | None:
    """The last move of the answer, by the largest cell of the stream before each block. None where
    that is not drawn, where the answer stays at one place, or where at some block no place brings
    half of it back.
    """
    stream = heatmaps.shown_maps.get(BY_POSITION[0])
    if stream is None or (stream.shares.max(axis=1) < CARRIES).any():
        return None
    places = stream.shares.argmax(axis=1).tolist()
    moves = [block for block in range(len(places) - 1) if places[block] != places[block + 1]]
    if not moves:
        return None
    return _Move(moves[-1], places[moves[-1]], places[-1], len(moves) == 1)


def which_carries(heatmaps: Maps, cell: PatchCell, prompts: Prompts) -> tuple[str, str]:
    """Which part carries the answer, and what comes back with that piece of the first text."""
    patched = heatmaps.shown_maps[cell.what]
    share = float(patched.shares[cell.block, cell.place])
    how_much = percents(share)
    if not heatmaps.is_exact(cell.what, cell.block, cell.place):
        how_much += ", by the preview"
    sublayer = "attention" if cell.what == BY_POSITION[1] else "MLP"
    part = f"the {sublayer} of block {cell.block}"
    where = _name_of_place(prompts, cell.place)
    right = in_quotes(prompts.names[0])
    if share >= CARRIES:
        comes = f"{right} comes back"
        answer = f"{capitalise_text(part)} at {where} carries the answer {right}."
    else:
        comes = f"{right} comes back only in part"
        answer = f"No single part carries the answer {right}; {part} at {where} comes nearest."
    move = _last_move(heatmaps)
    if move is not None and cell == PatchCell(BY_POSITION[1], move.block, move.after):
        until = "Up to" if move.is_only else "Before"
        answer = (
            f"{until} block {move.block} the answer {right} is held at "
            f"{_name_of_place(prompts, move.before)}; {part} brings it to {where}."
        )
    return (
        answer,
        f"Put that one piece of the first text into the second, and {comes} ({how_much}).",
    )


def _name_of_place(prompts: Prompts, place: int) -> str:
    """A token of the prompt in a sentence."""
    if place == len(prompts.tokens) - 1:
        return f"the last token {in_quotes(prompts.tokens[place])}"
    return name_place(prompts.tokens, place)


def where_the_answer_is(stream: Patched, tokens: Sequence[str]) -> str:
    """At which tokens the stream has the answer, from block to block: in words what the map of the
    stream shows. Empty where at some block no place brings half of it back.
    """
    places = stream.shares.argmax(axis=1).tolist()
    if (stream.shares.max(axis=1) < CARRIES).any():
        return ""
    moves = [
        f"at {name_place(tokens, place)} before block {block}"
        for block, place in enumerate(places)
        if not block or place != places[block - 1]
    ]
    return (
        "The stream is all that the model knows at a place, so its map shows where the answer is: "
        f"{', then '.join(moves)}."
    )


def first_shown(subject: Subject, prompts: Prompts) -> int:
    """The first position that is shown: in a causal model, where the prompts begin to differ."""
    if subject.lm.model.config.mask == "causal":
        return prompts.pair.first_difference
    return 0


def _row(
    quantities: Sequence[Quantity],
    prompts: Prompts,
    heatmaps: Maps,
    chosen: PatchCell | None,
    first: int = 0,
) -> None:
    for at, (column, quantity) in enumerate(
        zip(st.columns(len(quantities), gap="small"), quantities, strict=True)
    ):
        with column:
            _map(quantity, prompts, heatmaps, chosen, first, has_scale=at == 0)


def _map(
    quantity: Quantity,
    prompts: Prompts,
    heatmaps: Maps,
    chosen: PatchCell | None,
    first: int,
    *,
    has_scale: bool,
) -> None:
    name = quantity.name
    if (patched := heatmaps.shown_maps.get(name)) is None:
        guess = heatmaps.guessed[name]
        st.info(
            f"**{guess.quantity.title}** is not drawn: its preview is not to be trusted here "
            f"({guess.agreement}; it is drawn "
            f"from {TRUSTED} on). “{COMPUTE}”, below, shows it."
        )
        return
    shares = patched.restored
    [(block, place, _)] = largest_cells(patched, 1)
    best = meaning(
        patched, block, place, prompts.tokens, exact=heatmaps.is_exact(name, block, place)
    )
    blocks, places = map(range, shares.values.shape)
    words = [
        [
            _in_lines(patched, block, place, exact=heatmaps.is_exact(name, block, place))
            for place in places
        ]
        for block in blocks
    ]
    figure = draw_restored(
        shares,
        theme(),
        first=first,
        title=quantity.title,
        words=words,
        marked=prompts.differing_positions if quantity.by == "position" else (),
        chosen=(chosen.block, chosen.place) if chosen is not None and chosen.what == name else None,
        has_scale=has_scale,
    )
    show_figure(
        figure,
        key=f"patched {name}",
        choose=lambda at: _put(PatchCell(name, *at)),
        config={"modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d"]},
        alt=f"{quantity.title}: {best}",
    )
    if name not in heatmaps.exact:
        st.caption(f"preview: {heatmaps.guessed[name].agreement}")


def largest_cells(patched: Patched, most: int) -> list[tuple[int, int, float]]:
    """The cells that restore most: block, place and share."""
    shares = patched.shares
    cells = [
        divmod(int(index), shares.shape[1])
        for index in np.argsort(-shares, axis=None, kind="stable")[:most]
    ]
    return [(block, place, float(shares[block, place])) for block, place in cells]


def meaning(patched: Patched, block: int, place: int, tokens: Sequence[str], *, exact: bool) -> str:
    """The meaning of a cell, as a sentence."""
    cell = PatchCell(patched.quantity.name, block, place)
    restores = _restores(patched, cell, exact=exact)
    return f"{piece(patched.quantity, block, place, tokens, patched.places)} {restores}"


def _restores(patched: Patched, cell: PatchCell, *, exact: bool) -> str:
    """What a patch brings back, as the end of a sentence."""
    share = float(patched.shares[cell.block, cell.place])
    answer = format_signed(float(patched.answers[cell.block, cell.place]), 2)
    brings = "brings" if exact else "would bring, by the preview,"
    return f"{brings} {percents(share)} of the answer back ({answer} points)."


def percents(share: float) -> str:
    """A share of the answer as the page writes it."""
    return f"{100 * share:.0f} %".replace("-", "−")


def piece(quantity: Quantity, block: int, place: int, tokens: Sequence[str], places: Axis) -> str:
    """The piece that was put in, as the beginning of a sentence."""
    of = {
        "resid_pre": "The stream before block {b} at position {p} ({t})",
        "attention.out": "What attention adds in block {b} at position {p} ({t})",
        "mlp.out": "What the MLP adds in block {b} at position {p} ({t})",
        "attention.z": "The output of head {p} of block {b}",
        "attention.pattern": "The pattern of head {p} of block {b}",
        "attention.q": "The queries of head {p} of block {b}",
        "attention.k": "The keys of head {p} of block {b}",
        "attention.v": "The values of head {p} of block {b}",
    }[quantity.name]
    if quantity.by == "key head":
        of = of.replace("head {p}", "key head {t}")
    if quantity.by == "position":
        told = tokens[place]
    else:
        told = places.labels[place]
    return of.format(b=block, p=place, t=told)


def _in_lines(patched: Patched, block: int, place: int, *, exact: bool) -> str:
    """The same in short lines, for a small picture."""
    if patched.quantity.by == "position":
        at = f"{place} {patched.places.labels[place]}"
    else:
        at = patched.places.labels[place]
    lines = (
        f"block {block}",
        f"{patched.quantity.by} {at}",
        percents(float(patched.shares[block, place])),
        "" if exact else "preview",
    )
    return "\n".join(filter(None, lines))


def _put(cell: PatchCell) -> None:
    """Put a cell into the address: it is explained."""
    addresses.write(CELL, cell.address)


def chosen_cell(heatmaps: Maps) -> PatchCell | None:
    """The cell that the address names, if this model and these prompts have it."""
    about = "a cell such as attention.z/0/1: what is replaced, the block, and the head or position"
    values = Values(about, lambda asked: _cell(heatmaps, asked) is not None)
    return controls.linked_choice(CELL, lambda asked: _cell(heatmaps, asked), None, values=values)


def _cell(heatmaps: Maps, asked: str) -> PatchCell | None:
    what, _, rest = asked.partition("/")
    block, _, place = rest.partition("/")
    if (
        what not in heatmaps.shown_maps
        or not (block.isdecimal() and place.isdecimal())
        or len(rest) > 12
    ):
        return None
    cell = PatchCell(what, int(block), int(place))
    shape = heatmaps.best_values(what).answers.shape
    if cell.block < shape[0] and cell.place < shape[1]:
        return cell
    return None


def which_head(subject: Subject, prompts: Prompts, heatmaps: Maps) -> None:
    """The row of heatmaps by head, and the cell that is explained."""
    config = subject.lm.model.config
    chosen = chosen_cell(heatmaps)
    st.markdown("**Which head?** What one head computed at all positions is put in.")
    _row(shown_quantities(config, BY_HEAD), prompts, heatmaps, chosen)
    if config.key_heads != config.n_head:
        each = config.n_head // config.key_heads
        st.caption(
            f"This model has {config.key_heads} key heads for {config.n_head} heads: keys and "
            "values are shared by "
            f"{each} neighbouring heads, and a patch of them acts on all {each}."
        )
    _choose(prompts, heatmaps, chosen, first_shown(subject, prompts))
    if chosen is not None:
        # The chosen cell in words.
        patched = heatmaps.best_values(chosen.what)
        right, wrong = prompts.names
        says = meaning(
            patched, chosen.block, chosen.place, prompts.tokens, exact=heatmaps.is_exact(*chosen)
        )
        share = float(patched.shares[chosen.block, chosen.place])
        if share > 0.1:
            about = f"It carries some of what makes the model prefer {right} to {wrong}."
        elif share < -0.1:
            about = f"With it the model prefers {wrong} to {right} even more than without."
        else:
            about = "By itself it carries hardly anything of what the two prompts differ in."
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(escape_markdown(f"{says} {about}"), width="stretch")
            st.button(
                "Close",
                on_click=close_cell,
                key="close cell",
                type="tertiary",
                icon=":material/close:",
            )


def _choose(prompts: Prompts, heatmaps: Maps, chosen: PatchCell | None, first: int) -> None:
    """Select boxes for the cell that is explained: first the heatmap, then what is in it."""

    def begin(what: str | None) -> None:
        if what is None:
            close_cell()
        else:
            [(block, place, _)] = largest_cells(heatmaps.best_values(what), 1)
            _put(PatchCell(what, block, place))

    with st.container(horizontal=True):
        hint = (
            "The heatmap of the cell that is explained: its highest cell at first. You can also "
            "click a cell."
        )
        pick(
            "Explain a cell of",
            [None, *heatmaps.shown_maps],
            None if chosen is None else chosen.what,
            begin,
            key="patched map",
            help=hint,
            format_func=lambda what: (
                "no heatmap" if what is None else heatmaps.best_values(what).quantity.title
            ),
        )
        if chosen is None:
            return
        patched = heatmaps.best_values(chosen.what)
        blocks, places = map(range, patched.shares.shape)
        pick(
            "Block",
            blocks,
            chosen.block,
            lambda block: _put(chosen._replace(block=block)),
            key="patched block",
            help="The row of the cell.",
        )
        is_position = patched.quantity.by == "position"
        pick(
            patched.quantity.by.capitalize(),
            places[first:] if is_position and chosen.place >= first else places,
            chosen.place,
            lambda place: _put(chosen._replace(place=place)),
            key=f"patched {patched.quantity.by}",
            help="The column of the cell.",
            format_func=lambda place: (
                f"{place} {prompts.tokens[place]}"
                if is_position
                else str(patched.places.labels[place])
            ),
        )


def close_cell() -> None:
    """Take the chosen cell out of the address."""
    addresses.write(CELL, None)


def summary(heatmaps: Maps) -> None:
    """In words, which heads restore most, with ways to look at them."""
    name = "attention.z"
    if name not in heatmaps.shown_maps:
        return
    st.markdown(
        "**The heads that restore most**" + ("" if name in heatmaps.exact else " (by the preview)")
    )
    with st.container(horizontal=True):
        for block, head, share in largest_cells(heatmaps.best_values(name), MOST_TOLD):
            query = {**frame.shared_state(), "block": str(block), "head": str(head)}
            label = f"Head {head} of block {block}: {percents(share)}"
            frame.link(
                ATTENTION,
                label,
                description="See what it looks at, on the page Attention.",
                query=query,
            )


def which_feature(subject: Subject, prompts: Prompts) -> Patched | None:
    """How much each feature of a dictionary restores; None for a model without a dictionary, and as
    long as it is not known.
    """
    lm = subject.lm
    names = lm.dictionaries() if lm.kind.continues else []
    if not names:
        return None
    st.markdown(
        "**Which feature?** A feature of a dictionary has at every position the activation that it "
        "has there after the clean prompt."
    )
    hint = "The dictionary whose features are patched, one at a time."
    name = names[0]
    if len(names) > 1:
        name = controls.select("Dictionary", names, key="dictionary", help=hint)
    pair = prompts.pair
    settings: dict[str, Any] = {"clean": subject.prompt, "corrupted": prompts.text}
    settings |= {"right": pair.right, "wrong": pair.wrong, "what": f"dictionary.{name}"}
    asked = ask(subject, changing.patch, "Patching the features", **settings)
    try:
        patched = asked.follow_value(
            "Patch the features", effort(lm.model, len(pair.clean), 2 + MOST_FEATURES)
        )
    except ValueError as error:
        st.caption(f"{escape_markdown(capitalise_text(str(error)))}.")
        return None
    if patched is None:
        return None
    shares = patched.shares[0]
    if not patched.is_defined:
        st.caption("Both prompts have the same answer: there is nothing to restore.")
        return None
    order = np.argsort(-np.abs(shares), kind="stable")[:FEATURES_SHOWN]
    labels = tuple(patched.places.labels[i] for i in order)
    best = Unit("dictionary", index=int(labels[0]), called=name)
    title = said_title(subject.key, best)
    most = "most " if len(shares) == MOST_FEATURES else ""
    show_figure(
        promoted(LabelledArray(shares[order], (Axis("feature", labels),), SHARE), theme()),
        key="patched features",
        alt="How much of the answer features restore: "
        + ", ".join(
            f"{one} {percents(float(shares[i]))}" for one, i in zip(labels, order, strict=True)
        )
        + ".",
    )
    st.caption(
        f"{capitalise_text(title)} moves the answer most: {percents(float(shares[order[0]]))} of "
        "it. "
        f"Of {format_count(len(shares), 'feature')} whose activation differs {most}between the "
        "prompts, the "
        f"{len(order)} that move it most are drawn. What the dictionary misses stays as it is."
    )
    query = {**frame.shared_state(), "dictionary": name, "unit": best.name}
    frame.link(FEATURES, f"Open {title} on Features", query=query)
    return patched


def tries(subject: Subject) -> list[Try]:
    """The suggestions that hold for this model: those whose prompts have as many tokens and are
    answered differently.
    """
    lm = subject.lm
    offers = list[Try]()
    if not lm.model.config.n_layer:
        return offers

    def offer(title: str, clean: str, corrupted: str, notice: str) -> None:
        asked = {"prompt": clean, CORRUPTED: corrupted, RIGHT: LIKELIEST, WRONG: LIKELIEST}
        offers.append(Try(title, notice, asked, act=close_cell))

    # Pairs of prompts with known answers, if the model knows them.
    for pair in known_contrasts(lm):
        known = (lm.tokenizer.encode(word).ids for word in (pair.right, pair.wrong))
        if _answers(subject.key, pair.clean, pair.corrupted) == tuple(
            "".join(map(lm.tokenizer.label, ids)) for ids in known
        ):
            question = (
                f"{in_quotes(pair.right)} or {in_quotes(pair.wrong)}? {pair.about} Which single "
                "head brings it back?"
            )
            offer(pair.title, pair.clean, pair.corrupted, question)
    task = (lm.card.source or {}).get("task")
    texts: Sequence[tuple[str, str, str, str]] = {"addition": SUMS, None: TEXTS}.get(task, ())
    if task == "induction":
        texts = _repeated_prompts(subject.default)
    for title, clean, corrupted, notice in texts:
        if (answers := _answers(subject.key, clean, corrupted)) is not None:
            said = (
                f"The likeliest token is {escape_markdown(answers[0])} after the one prompt and "
                f"{escape_markdown(answers[1])} after the other."
            )
            offer(title, clean, corrupted, f"{said} {notice}")
    return offers


@st.cache_data(max_entries=64, show_spinner=False)
def _answers(key: ModelKey, clean: str, corrupted: str) -> tuple[str, str] | None:
    """The likeliest tokens after both prompts, or None if they are the same, or if the prompts do
    not fit.
    """
    lm = language_model(key)
    both = [lm.tokenizer.encode(text) for text in (clean, corrupted)]
    if any(one.unknown or len(one.ids) > lm.model.config.context_length for one in both) or len(
        both[0].ids
    ) != len(both[1].ids):
        return None
    pair = PromptPair(tuple(both[0].ids), tuple(both[1].ids), 0, 0)
    right, wrong = likeliest_answers(lm.model, pair)
    # The likeliest after the corrupted prompt is the right answer again if the swapped pair has it
    # first.
    turned, _ = likeliest_answers(lm.model, PromptPair(pair.corrupted, pair.clean, 0, 0))
    if turned == wrong:
        return (lm.tokenizer.label(right), lm.tokenizer.label(wrong))
    return None


def _repeated_prompts(default: str) -> tuple[tuple[str, str, str, str], ...]:
    """For a model of induction: a block of symbols that begins again, with another symbol after the
    one that is read last.
    """
    words = default.split()
    again = words.index(words[0], 1) if words[0] in words[1:] else 0
    if again < 6:
        return ()
    clean = words[: again + 3]
    others = [word for word in words if word not in clean[again - 1 :] and word != words[3]]
    corrupted = [*clean[:3], others[-1], *clean[4:]]
    notice = (
        "A block of symbols begins again. In the second text another symbol follows where "
        "the last one stood before. Which "
        "head looks there, and at which position is the answer before that?"
    )
    return (("What came next before", " ".join(clean), " ".join(corrupted), notice),)


def numbers_and_code(
    subject: Subject, prompts: Prompts, heatmaps: Maps, of_features: Patched | None = None
) -> PageResult:
    """The control for the picture whose numbers and code are below, and these; without both where
    none is drawn.
    """
    shown = heatmaps.shown_maps | (
        {} if of_features is None else {of_features.quantity.name: of_features}
    )
    titles = {one.quantity.title: name for name, one in shown.items()}
    if not titles:
        return PageResult()
    hint = "The picture whose numbers and code are below."
    name = titles[controls.select("Numbers and code of", list(titles), key="of", help=hint)]
    texts = {"clean": subject.prompt, "corrupted": prompts.text}
    pair = prompts.pair
    how = {"right": pair.right, "wrong": pair.wrong, "what": name}
    how["exact"] = name in heatmaps.exact or name not in heatmaps.shown_maps
    right, wrong = prompts.names
    code = ask(subject, changing.patch, "Patching", **texts, **how).code(
        f"# The right answer is {right!r}, the wrong one {wrong!r}.",
        "result.numbers  # [number, block, place]: the shares restored, and the differences of "
        "logits",
    )
    return PageResult(lambda: shown[name].numbers, code)
