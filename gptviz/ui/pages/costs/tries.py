"""The suggestions of the page Size and cost."""

from __future__ import annotations

from gptviz.figures.kit.format import percent
from gptviz.interp.changing.edits import WEIGHTS, edit, quantisers
from gptviz.interp.changing.fewer_bits import weight
from gptviz.interp.reading import costs as gathered
from gptviz.machine.memory import in_bytes
from gptviz.model import Config
from gptviz.ui.records.costs import BITS
from gptviz.ui.widgets import Try

from .counts import BATCHES, CostSetting, costs_of, held


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
                f"At {longest:,} tokens, {percent(share)} of the operations of reading compare tokens with each other; at "
                f"{shorter:,} tokens it is {percent(short)}: these alone grow with the square of the length.",
                {"tokens": longest, "pass": "forward"},
            )
        )
    one, many = (costs_of(config, batch, chosen.tokens) for batch in (1, BATCHES[-1]))
    small, large = (in_bytes(sum(held(costs, chosen).values())) for costs in (one, many))
    offers.append(
        Try(
            "A large batch",
            f"From 1 text to {BATCHES[-1]:,}, the memory of training goes from {small} to {large}: weights and optimiser stay, "
            "activations grow.",
            {"batch": BATCHES[-1]},
        )
    )
    saved = one.optimiser["adamw"] - one.optimiser["muon"]
    if saved:
        muon, adamw = (in_bytes(one.optimiser[name]) for name in ("muon", "adamw"))
        notice = f"It keeps {muon} from step to step where AdamW keeps {adamw}."
        offers.append(Try("Muon", notice, {"optimiser": "muon"}))
    kept = quantisers([edit(f"{WEIGHTS}=2bit.g32", config)], config)
    size = weight(config, kept)
    offers.append(
        Try(
            "Two bits a number",
            f"The weights take {in_bytes(size.kept)} instead of {in_bytes(size.float32)} in float32. The view **With "
            "fewer bits** says what the guess, the loss and the text lose.",
            {"view": BITS, "bits": "2", "scale": "g32", "matrix": "all"},
        )
    )
    return offers
