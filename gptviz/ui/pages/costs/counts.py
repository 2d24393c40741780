"""Parameters, operations and memory of a model, as formulas and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.figures.kit.format import in_words, percent
from gptviz.figures.reading import costs as figures
from gptviz.interp.changing.edits import edit
from gptviz.interp.changing.fewer_bits import weight
from gptviz.interp.changing.weight_edits import WEIGHTS, quantisers
from gptviz.interp.reading import costs as gathered
from gptviz.interp.reading.costs import Costs, PassKind
from gptviz.labelled_array import LabelledArray
from gptviz.machine.memory import in_bytes
from gptviz.model import Config
from gptviz.model.costs.memory_needed import USUAL_TOKENS
from gptviz.model.costs.operations import part_of
from gptviz.train.recipe import Optimiser, Recipe
from gptviz.ui.records.costs import BITS, COUNTS, VIEWS
from gptviz.ui.shell.subject import Subject, opening
from gptviz.ui.widgets import Try, controls, show_figure, theme
from gptviz.ui.widgets.tables import show_table

# The keys of the address that only the controls of "Counts" have.
OWN = ("batch", "tokens", "pass", "optimiser")
BATCHES = tuple(2**i for i in range(11))
OPTIMISERS: tuple[Optimiser, ...] = get_args(Optimiser)
PASSES: dict[str, str] = {"forward": "Reading", "training": "A step of training"}
DEFAULT_BATCH = Recipe(steps=1).batch_size
# This many lengths make a smooth area.
PLACES = 48
# A text as long as this share of the context: beyond it the context itself is suggested.
NEARLY = 0.9


@dataclass(frozen=True)
class CostSetting:
    """The values of the controls."""

    batch: int  #: how many texts are read side by side
    tokens: int  #: of each text
    optimiser: Optimiser  #: what training changes the weights with
    of: PassKind  #: whether operations are those of reading the texts, or of a step of training


def view_control() -> str:
    """The control `view`."""
    controls.open_with("view", COUNTS, VIEWS, OWN)
    hint = (
        "With fewer bits: what it loses if its weights are rounded. Counts: parameters, "
        "operations and memory, as formulas."
    )
    return controls.select(
        "View", VIEWS, key="view", help=hint, segmented=True, label_visibility="collapsed"
    )


def setting(config: Config, columns: Sequence[DeltaGenerator]) -> CostSetting:
    """The controls, one in each of four columns."""
    left, middle, right, last = columns
    with left:
        batch = controls.notch(
            "Batch, texts",
            BATCHES,
            key="batch",
            default=DEFAULT_BATCH,
            help="How many texts are read at once. Weights take the same memory for any number of "
            "them.",
        )
    with middle:
        powers = [2**i for i in range(config.context_length.bit_length())]
        # the powers of two that fit, and all of the context
        lengths = tuple(sorted({*powers, config.context_length}))
        # as far as a person would read
        tokens = max(length for length in lengths if length <= max(1, USUAL_TOKENS))
        if len(lengths) > 1:
            tokens = controls.notch(
                "Context, tokens",
                lengths,
                key="tokens",
                default=tokens,
                help="How many tokens each text has, at most as many as the model can read.",
            )
    with right:
        of = controls.select(
            "Operations of",
            list(PASSES),
            key="pass",
            default="training",
            help="A step of training reads the texts, then goes back through the model for the "
            "gradients.",
            format_func=lambda name: PASSES[name],
        )
    with last:
        optimiser = controls.select(
            "Optimiser",
            list(OPTIMISERS),
            key="optimiser",
            help="What training changes the weights with: it keeps numbers of its own for them.",
        )
    return CostSetting(int(batch), int(tokens), optimiser, of)  # type: ignore[arg-type]


costs_of = st.cache_data(max_entries=64, show_spinner="Counting")(gathered.costs)


def charts(config: Config, costs: Costs, chosen: CostSetting) -> None:
    """Operations and memory over the length of a text, side by side."""
    left, right = st.columns(2)
    lengths = context_lengths(config)
    work = operations_over(config, chosen.batch, lengths, chosen.of)
    kept = memory_over(config, chosen.batch, lengths, chosen.optimiser)
    sums: dict[str, int] = {}
    for product in costs.products:
        sums[product.part] = sums.get(product.part, 0) + (
            product.training if chosen.of == "training" else product.forward
        )
    said = _shares(sums)
    texts = f"{chosen.batch:,} {'text' if chosen.batch == 1 else 'texts'} side by side"
    with left.container(gap="xsmall"):
        st.markdown(f"**Operations**, {PASSES[chosen.of].lower()}, {texts}")
        show_figure(
            figures.areas(work, theme(), height=330, at=chosen.tokens),
            key="operations",
            alt=f"Operations by part over the length of a text, {texts}. {said}",
        )
        st.caption(said)
    with right.container(gap="xsmall"):
        st.markdown(f"**Memory** of training, {texts}")
        shares = _shares(held_bytes(costs, chosen))
        show_figure(
            figures.areas(kept, theme(), height=330, at=chosen.tokens, apart=(gathered.CACHE,)),
            key="memory",
            alt=f"Bytes held in training over the length of a text, {texts}. {shares}",
        )
        if costs.cache is not None:
            dashed = " The dashed line: what generating keeps instead."
        else:
            dashed = ""
        st.caption(f"{shares}{dashed}")


operations_over = st.cache_data(max_entries=64, show_spinner=False)(gathered.operations_over)
memory_over = st.cache_data(max_entries=64, show_spinner=False)(gathered.memory_over)


def context_lengths(config: Config) -> list[int]:
    return np.unique(np.linspace(1, config.context_length, PLACES).round().astype(int)).tolist()


def _shares(sums: dict[str, int]) -> str:
    """The parts in words, the largest first."""
    whole = max(1, sum(sums.values()))
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return (
        "At the dotted line: "
        + ", ".join(f"{name} {percent(count / whole)}" for name, count in ordered if count)
        + "."
    )


def held_bytes(costs: Costs, chosen: CostSetting) -> dict[str, int]:
    """The bytes that training holds."""
    held = (
        costs.weights["float32"],
        costs.gradients,
        costs.optimiser[chosen.optimiser],
        costs.activations,
    )
    return dict(zip(gathered.MEMORY, held, strict=True))


def headline(costs: Costs, chosen: CostSetting) -> None:
    """The numbers of this setting, in a row."""
    training = sum(held_bytes(costs, chosen).values())
    count = costs.training if chosen.of == "training" else costs.forward
    cells = [
        (
            "Parameters",
            f"{costs.parameters:,}",
            "The numbers that training finds; shared ones are counted once.",
        ),
        (
            f"Operations, {PASSES[chosen.of].lower()}",
            in_words(count),
            f"{count:,} multiplications and additions",
        ),
        (
            "Memory to train",
            in_bytes(training),
            "Weights, gradients, what the optimiser keeps, and activations, in float32",
        ),
    ]
    if costs.cache is not None:
        cells.append(
            (
                "Memory of keys and values",
                in_bytes(costs.cache),
                "What generating keeps of texts of this length, in float32",
            )
        )
    metrics(cells)


def metrics(cells: Sequence[tuple[str, str, str]]) -> None:
    """Numbers with their names and what they mean, as many side by side as there is room for."""
    with st.container(horizontal=True, gap="medium"):
        for label, value, hint in cells:
            st.metric(label, value, help=hint, width="content")


def parameters(config: Config) -> LabelledArray:
    """The bars of the tensors; the table that they show."""
    table = gathered.by_tensor(config)
    parts = tuple(part_of(name.replace("*", "0")) for name in table.axes[0].labels)
    largest = table.axes[0].labels[int(table.values.argmax())]
    note = (
        f"The largest is {largest}, with "
        f"{percent(float(table.values.max()) / max(1, int(table.values.sum())))} of all."
    )
    show_figure(
        figures.bars(table, parts, theme(), unit=gathered.PARAMETERS),
        key="parameters",
        alt=f"Parameters of every tensor. {note}",
    )
    more = (
        f" A star stands for the number of the block: the tensors of all {config.n_layer} blocks "
        "are counted together."
    )
    st.caption(note + (more if config.n_layer > 1 else ""))
    return table


def formulas(costs: Costs, chosen: CostSetting) -> None:
    """Every product and everything that a step keeps, with its formula."""
    products = {
        "product": [product.name for product in costs.products],
        "blocks": [product.times for product in costs.products],
        "operations of reading, per block": [product.formula for product in costs.products],
        "reading": [product.forward for product in costs.products],
        "a step of training": [product.training for product in costs.products],
    }
    kept = costs.kept.by_part(costs.batch, costs.tokens)
    kept_by = costs.optimiser[chosen.optimiser]
    of_optimiser = "4 for each number of the matrices in blocks, 2 · 4 for others"
    if kept_by in (4 * costs.parameters, 8 * costs.parameters):
        of_optimiser = (
            f"{'2 · ' if kept_by == 8 * costs.parameters else ''}4 · {costs.parameters:,}"
        )
    rows: list[tuple[str, str, int]] = [
        ("weights", f"4 · {costs.parameters:,}", costs.weights["float32"]),
        (
            "weights, their matrices in 2 bytes a number",
            "2 for each number of a matrix, 4 for others",
            costs.weights["bfloat16"],
        ),
        ("gradients", f"4 · {costs.parameters:,}", costs.gradients),
        (f"what {chosen.optimiser} keeps", of_optimiser, kept_by),
        *(
            (f"activations, {part}", costs.kept.formula(part), count)
            for part, count in kept.items()
        ),
    ]
    if costs.cache is not None:
        config = costs.config
        read = "(T + S)" if costs.config.n_encoder_layer else "T"
        sizes = f"{config.key_heads} · {config.head_size}"
        rows.append(
            ("keys and values", f"4 · 2 · {config.n_layer} · B · {read} · {sizes}", costs.cache)
        )
    letters = f"B = {costs.batch:,} texts of T = {costs.tokens:,} tokens"
    if costs.config.n_encoder_layer:
        letters += ", with sources of S = T tokens"
    st.markdown(f"**Every number with its formula**, for {letters}")
    counts = st.column_config.NumberColumn(format="localized")
    show_table(
        pd.DataFrame(products),
        hide_index=True,
        height="content",
        column_config={"reading": counts, "a step of training": counts},
        alt="Every matrix product with its formula and its operations",
    )
    show_table(
        pd.DataFrame(rows, columns=["memory", "formula (bytes)", "bytes"]),
        hide_index=True,
        height="content",
        column_config={"bytes": counts},
        alt="Everything that is held in memory, with its formula",
    )


def code(subject: Subject, chosen: CostSetting) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    config = subject.lm.model.config
    return f"""{opening(subject.lm, "from gptviz.interp.reading.costs import by_tensor, memory_over, operations_over")}
costs = lm.costs(batch={chosen.batch}, context={chosen.tokens})
costs.parameters, costs.forward, costs.training  # counts
costs.weights, costs.gradients, costs.activations, costs.optimiser, costs.cache  # bytes
costs.products  # every matrix product with its formula
lengths = {context_lengths(config)}
tensors = by_tensor(lm.model.config)  # [tensor]
operations = operations_over(lm.model.config, {chosen.batch}, lengths, {chosen.of!r})  # [part, tokens]
memory = memory_over(lm.model.config, {chosen.batch}, lengths, {chosen.optimiser!r})  # [what, tokens]"""


def tries(config: Config, chosen: CostSetting) -> list[Try]:
    """The suggestions for this model: each sentence is computed for it."""
    offers = []
    longest = config.context_length
    if longest > 1 and config.n_layer:
        share = gathered.share_between_tokens(config, longest)
        shorter = max(2, longest // 16)
        short = gathered.share_between_tokens(config, shorter)
        offers.append(
            Try(
                "The longest text",
                f"At {longest:,} tokens, {percent(share)} of the operations of reading compare "
                "tokens with each other; at "
                f"{shorter:,} tokens it is {percent(short)}: only these grow with the square of "
                "the length.",
                {"tokens": longest, "pass": "forward"},
            )
        )
    single, many = (costs_of(config, batch, chosen.tokens) for batch in (1, BATCHES[-1]))
    small, large = (in_bytes(sum(held_bytes(costs, chosen).values())) for costs in (single, many))
    offers.append(
        Try(
            "A large batch",
            f"From 1 text to {BATCHES[-1]:,}, the memory of training goes from {small} to "
            f"{large}: weights and optimiser stay, "
            "activations grow.",
            {"batch": BATCHES[-1]},
        )
    )
    saved = single.optimiser["adamw"] - single.optimiser["muon"]
    if saved:
        muon, adamw = (in_bytes(single.optimiser[name]) for name in ("muon", "adamw"))
        notice = f"It keeps {muon} from step to step where AdamW keeps {adamw}."
        offers.append(Try("Muon", notice, {"optimiser": "muon"}))
    kept = quantisers([edit(f"{WEIGHTS}=2bit.g32", config)], config)
    size = weight(config, kept)
    offers.append(
        Try(
            "Two bits a number",
            f"The weights take {in_bytes(size.kept)} instead of {in_bytes(size.float32)} in "
            "float32. The view **With "
            "fewer bits** says what the guess, the loss and the text lose.",
            {"view": BITS, "bits": "2", "scale": "g32", "matrix": "all"},
        )
    )
    return offers
