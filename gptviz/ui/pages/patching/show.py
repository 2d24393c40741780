"""The heatmaps of the page Patching, a row of them by position and one by head, and what their cells mean in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import streamlit as st

from gptviz.figures.changing.patched import restored
from gptviz.figures.kit.format import signed
from gptviz.interp.changing.attribution_patching import CHECKED, STEPS, TRUSTED, Preview
from gptviz.interp.changing.patchable import Quantity
from gptviz.interp.changing.patching import Patched
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.job import Job, Stage
from gptviz.settings.address_values import Values
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import addresses, controls, escaped, jobs, pressed, show_figure, theme
from gptviz.ui.widgets.picking import pick

from . import computed
from .prompts import Prompts, verdict

# The parameter of the address that names the cell that is explained: quantity, block and place.
CELL = "cell"
MOST_TOLD = 3
COMPUTE = "Compute exactly"


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
    """What patches really do, by the name of the quantity, as far as that is computed; else also the previews of all."""

    exact: dict[str, Patched]
    guessed: dict[str, Preview]

    def best(self, name: str) -> Patched:
        """The exact values if they are computed, or else the preview."""
        return self.exact[name] if name in self.exact else self.guessed[name]

    def is_exact(self, name: str, block: int, place: int) -> bool:
        """Whether the value of a cell is exact, in a preview too."""
        return name in self.exact or bool(self.guessed[name].known[block, place])

    @property
    def shown(self) -> dict[str, Patched]:
        """What is drawn: no preview that disagrees with the patches that were computed to check it."""
        names = dict.fromkeys((*self.guessed, *self.exact))
        return {name: self.best(name) for name in names if name in self.exact or self.guessed[name].is_trusted}


def maps(subject: Subject, prompts: Prompts) -> Maps:
    """What is computed of the patches, and a preview of the others; with the button that computes them, and how far it is."""
    begun = computed.exact(subject.key, prompts.pair)
    stage = None if begun is None else begun.stage
    results: dict[str, Patched] = {} if begun is None else dict(begun.results)
    names = [one.name for one in computed.shown(subject.lm.model.config, (*computed.BY_POSITION, *computed.BY_HEAD))]
    guessed = {} if len(results) == len(names) else computed.previews(subject.key, prompts.pair)
    _state(subject, prompts, begun, stage, len(names), len(results))
    exact = {name: results[name].labelled(prompts.tokens) for name in names if name in results}
    return Maps(exact, {name: one.labelled(prompts.tokens) for name, one in guessed.items()})


def _state(subject: Subject, prompts: Prompts, begun: Job[None] | None, stage: Stage | None, of: int, ready: int) -> None:
    """Whether heatmaps are a preview or exact, with the button or the bar."""
    if ready == of:
        verdict(prompts)
        st.caption(":material/check: All heatmaps are exact: every patch was computed.")
        return
    button, says = st.columns([3, 7], vertical_alignment="center")
    exact = f"{ready} of {of} heatmaps are exact; the others are" if ready else "These heatmaps are"
    with says.container(gap="xsmall"):
        verdict(prompts)
        st.caption(
            f"{exact} a **preview**, guessed from the slopes of {STEPS} passes (attribution patching). Of each, up to {CHECKED} "
            "patches were computed: how well it agrees with them stands below it."
        )
        if subject.lm.model.config.experts:
            st.caption(
                "This model is a mixture of experts: a patch may make a router choose other experts, and a slope does not show "
                "that. So the preview of a whole sublayer may differ from the sum of the previews of its parts."
            )
    if stage is None or not stage.is_active:
        many = computed.patches(subject.key, prompts.pair)
        about = f"Computes each of the {many:,} patches by itself. It goes on if you reload or leave the page."
        with button:
            if pressed(COMPUTE, key="compute patches", type="primary", icon=":material/calculate:", help=about):
                computed.begin(subject.key, prompts.pair)
                st.rerun()
    if begun is not None:
        jobs.follow(begun, "patches", stage)


def meaning(found: Patched, block: int, place: int, tokens: Sequence[str], *, exact: bool) -> str:
    """The meaning of a cell, as a sentence."""
    share = float(found.shares[block, place])
    restores = f"{'restores' if exact else 'would restore, by the preview,'} {percents(share)} of the answer"
    answer = signed(float(found.answers[block, place]), 2)
    return f"{piece(found.quantity, block, place, tokens, found.places)}: {restores} ({answer})."


def _brief(found: Patched, block: int, place: int, *, exact: bool) -> str:
    """The same in short lines, for a small picture."""
    where = f"{place} {found.places.labels[place]}" if found.quantity.by == "position" else found.places.labels[place]
    lines = (
        f"block {block}",
        f"{found.quantity.by} {where}",
        percents(float(found.shares[block, place])),
        "" if exact else "preview",
    )
    return "\n".join(filter(None, lines))


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
    told = tokens[place] if quantity.by == "position" else places.labels[place]
    return of.format(b=block, p=place, t=told)


def percents(share: float) -> str:
    """A share of the answer as the page writes it."""
    return f"{100 * share:.0f} %".replace("-", "−")


def where(subject: Subject, prompts: Prompts, found: Maps) -> None:
    """The row of heatmaps by position."""
    first = first_shown(subject, prompts)
    st.markdown("**Where?** What was computed at one position, in one block, is put in. A click on a cell says what it means.")
    _row(computed.shown(subject.lm.model.config, computed.BY_POSITION), prompts, found, chosen_cell(found), first)
    if first:
        places = f"positions 0 to {first - 1}" if first > 1 else "position 0"
        st.caption(f"Left out: {places}, where both prompts are the same, so that a patch changes nothing.")


def which_head(subject: Subject, prompts: Prompts, found: Maps) -> None:
    """The row of heatmaps by head, and the cell that is explained."""
    config = subject.lm.model.config
    chosen = chosen_cell(found)
    st.markdown("**Which head?** What one head computed at all positions is put in.")
    _row(computed.shown(config, computed.BY_HEAD), prompts, found, chosen)
    if config.key_heads != config.n_head:
        each = config.n_head // config.key_heads
        st.caption(
            f"This model has {config.key_heads} key heads for {config.n_head} heads: keys and values are shared by "
            f"{each} neighbouring heads, and a patch of them acts on all {each}."
        )
    _choose(prompts, found, chosen, first_shown(subject, prompts))
    if chosen is not None:
        _explain(prompts, found, chosen)


def _choose(prompts: Prompts, found: Maps, chosen: PatchCell | None, first: int) -> None:
    """Select boxes for the cell that is explained: first the heatmap, then what is in it."""

    def begin(what: str | None) -> None:
        if what is None:
            close_cell()
        else:
            [(block, place, _)] = largest(found.best(what), 1)
            _put(PatchCell(what, block, place))

    with st.container(horizontal=True):
        about = "The heatmap of the cell that is explained: its highest cell at first. You can also click a cell."
        pick(
            "Explain a cell of",
            [None, *found.shown],
            None if chosen is None else chosen.what,
            begin,
            key="patched map",
            help=about,
            format_func=lambda what: "no heatmap" if what is None else found.best(what).quantity.title,
        )
        if chosen is None:
            return
        one = found.best(chosen.what)
        blocks, places = map(range, one.shares.shape)
        pick(
            "Block",
            blocks,
            chosen.block,
            lambda block: _put(chosen._replace(block=block)),
            key="patched block",
            help="The row of the cell.",
        )
        is_position = one.quantity.by == "position"
        pick(
            one.quantity.by.capitalize(),
            places[first:] if is_position and chosen.place >= first else places,
            chosen.place,
            lambda place: _put(chosen._replace(place=place)),
            key=f"patched {one.quantity.by}",
            help="The column of the cell.",
            format_func=lambda place: f"{place} {prompts.tokens[place]}" if is_position else str(one.places.labels[place]),
        )


def _put(cell: PatchCell) -> None:
    """Put a cell into the address: it is explained."""
    addresses.write(CELL, cell.address)


def _row(quantities: Sequence[Quantity], prompts: Prompts, found: Maps, chosen: PatchCell | None, first: int = 0) -> None:
    for column, quantity in zip(st.columns(len(quantities), gap="small"), quantities, strict=True):
        with column:
            _one(quantity, prompts, found, chosen, first)


def first_shown(subject: Subject, prompts: Prompts) -> int:
    """The first position that is shown: in a causal model, where the prompts begin to differ."""
    return prompts.pair.first_difference if subject.lm.model.config.mask == "causal" else 0


def _one(quantity: Quantity, prompts: Prompts, found: Maps, chosen: PatchCell | None, first: int) -> None:
    name = quantity.name
    if (one := found.shown.get(name)) is None:
        _not_drawn(found.guessed[name])
        return
    shares = one.restored
    [(block, place, _)] = largest(one, 1)
    best = meaning(one, block, place, prompts.tokens, exact=found.is_exact(name, block, place))
    blocks, places = map(range, shares.values.shape)
    words = [[_brief(one, block, place, exact=found.is_exact(name, block, place)) for place in places] for block in blocks]
    figure = restored(
        shares,
        theme(),
        first=first,
        title=quantity.title,
        words=words,
        marked=prompts.differing if quantity.by == "position" else (),
        chosen=(chosen.block, chosen.place) if chosen is not None and chosen.what == name else None,
    )
    show_figure(
        figure,
        key=f"patched {name}",
        choose=lambda at: _put(PatchCell(name, *at)),
        config={"modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d"]},
        alt=f"{quantity.title}: {best}",
    )
    if name not in found.exact:
        st.caption(f"preview: {found.guessed[name].agreement}")


def _not_drawn(guess: Preview) -> None:
    """A sentence in the place of a heatmap whose preview is no answer."""
    st.info(
        f"**{guess.quantity.title}** is not drawn: its preview is not to be trusted here ({guess.agreement}; it is drawn from "
        f"{TRUSTED} on). “{COMPUTE}”, above, shows it."
    )


def largest(one: Patched, most: int) -> list[tuple[int, int, float]]:
    """The cells that restore most: block, place and share."""
    shares = one.shares
    cells = [divmod(int(index), shares.shape[1]) for index in np.argsort(-shares, axis=None, kind="stable")[:most]]
    return [(block, place, float(shares[block, place])) for block, place in cells]


def summary(found: Maps) -> None:
    """In words, which heads restore most, with ways to look at them."""
    name = "attention.z"
    if name not in found.shown:
        return
    st.markdown("**The heads that restore most**" + ("" if name in found.exact else " (by the preview)"))
    with st.container(horizontal=True):
        for block, head, share in largest(found.best(name), MOST_TOLD):
            query = {**frame.shared_state(), "block": str(block), "head": str(head)}
            label = f"Head {head} of block {block}: {percents(share)}"
            frame.link(ATTENTION, label, description="See what it looks at, on the page Attention.", query=query)


def chosen_cell(found: Maps) -> PatchCell | None:
    """The cell that the address names, or None if it names none, or one that this model and these prompts do not have."""
    about = "a cell such as attention.z/0/1: what is replaced, the block, and the head or position"
    values = Values(about, lambda asked: _cell(found, asked) is not None)
    return controls.linked(CELL, lambda asked: _cell(found, asked), None, values=values)


def _cell(found: Maps, asked: str) -> PatchCell | None:
    what, _, rest = asked.partition("/")
    block, _, place = rest.partition("/")
    if what not in found.shown or not (block.isdecimal() and place.isdecimal()) or len(rest) > 12:
        return None
    cell, shape = PatchCell(what, int(block), int(place)), found.best(what).answers.shape
    return cell if cell.block < shape[0] and cell.place < shape[1] else None


def close_cell() -> None:
    """Take the chosen cell out of the address."""
    addresses.write(CELL, None)


def _explain(prompts: Prompts, found: Maps, cell: PatchCell) -> None:
    """The chosen cell in words."""
    one = found.best(cell.what)
    right, wrong = prompts.names
    says = meaning(one, cell.block, cell.place, prompts.tokens, exact=found.is_exact(*cell))
    share = float(one.shares[cell.block, cell.place])
    if share > 0.1:
        about = f"It carries some of what makes the model prefer {right} to {wrong}."
    elif share < -0.1:
        about = f"With it the model prefers {wrong} to {right} even more than without."
    else:
        about = "By itself it carries hardly anything of what the two prompts differ in."
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(escaped(f"{says} {about}"), width="stretch")
        st.button("Close", on_click=close_cell, key="close cell", type="tertiary", icon=":material/close:")


def of_which(found: Maps) -> str | None:
    """The control for the heatmap whose numbers and code are below; None where none is drawn."""
    titles = {one.quantity.title: name for name, one in found.shown.items()}
    about = "The heatmap whose numbers and code are below."
    return titles[controls.select("Numbers and code of", list(titles), key="of", help=about)] if titles else None


def numbers(one: Patched) -> LabelledArray:
    """The numbers of a heatmap and the logit differences behind it, [number, block, place]."""
    axes = Axis("number", ("share restored", "logit difference")), *one.restored.axes
    return LabelledArray(np.stack((one.shares, one.answers)), axes, "value")
