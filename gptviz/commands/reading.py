"""The commands that show what a model computes on the way to its guesses."""

from __future__ import annotations

import sys
from statistics import median
from typing import TYPE_CHECKING, Any

from gptviz.settings.fields import check_number, whole_number
from gptviz.settings.kinds import HowLeftOut, LensKind

from .common import UsageError, pick_values, text_of, token_text, warn_of_unknown
from .options import File, Name, command
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

TOKENS = 8  # listed of each expert


@command(100)
def classify(lm: LanguageModel, text: str) -> CommandOutput:
    """Predict the label of a text.

    Args:
        text: what is read, as far as the model's context goes.
    """
    if lm.model.config.kind != "classifier":
        raise UsageError(f"{lm.name} is not a classifier: use generate {lm.name} --prompt TEXT")
    encoding = lm.tokenizer.encode(text)
    warn_of_unknown(encoding)
    if (read := lm.model.config.context_length) < len(encoding.ids):
        units = "words" if lm.tokenizer.kind == "words" else "tokens"
        print(
            f"gptviz: only the first {read} of {len(encoding.ids):,} {units} are read",
            file=sys.stderr,
        )
    probabilities = lm.classify(text)
    order = sorted(probabilities, key=probabilities.__getitem__, reverse=True)
    rows = [(f"{probabilities[name]:>7.2%}", name) for name in order]
    return CommandOutput({"label": order[0], "probabilities": probabilities}, [Table(rows)])


@command(150)
def context(lm: LanguageModel, prompt: str, how: HowLeftOut = "replaced") -> CommandOutput:
    """How many earlier tokens a model uses to guess the next, and which of them."""
    try:
        use = lm.context_use(prompt, how)
    except ValueError as error:
        raise UsageError(f"{lm.name}: {error}") from None
    windows = use.by_window.windows
    means = use.by_window.mean
    places = use.left_out.places
    labels = [lm.tokenizer.label(i) for i in use.ids]
    content = {
        "tokens": [token_text(lm, i) for i in use.ids],
        "loss": use.loss,
        "windows": windows,
    }
    content |= {"loss_by_window": means, "left_out": places, "rise": use.left_out.rise}
    losses = [(str(window), f"{mean:.3f}") for window, mean in zip(windows, means, strict=True)]
    rises = [
        (str(at), labels[at], f"{rise:+.3f}")
        for at, rise in zip(places, use.left_out.rise[-1], strict=True)
    ]
    guess = f"the guess at the next token is {labels[-1]}, with a loss of {use.loss[-1]:.3f} nats"
    lines: Lines = [
        Table(losses, ("tokens read", "mean loss (nats)")),
        f"{guess}; without a token it rises by",
        Table(rises, ("position", "token", "rise (nats)")),
    ]
    return CommandOutput(content, lines)


@command(175)
def experts(lm: LanguageModel, prompt: str, block: int | None = None) -> CommandOutput:
    """Which experts of a mixture the tokens of a text pass, and how often each is chosen.

    Args:
        block: only one block, counted from 0; default: all.
    """
    from gptviz.interp.reading.experts import even_load, load, tokens_of_expert

    config = lm.model.config
    if not config.experts or not config.n_layer or config.n_encoder_layer:
        raise UsageError(f"{lm.name} has no experts: its MLPs are whole, see the command neurons")
    if block is not None:
        check_number(whole_number(0, config.n_layer - 1), "--block", block)
    weights = lm.experts(prompt)
    shares = load(weights).values
    names = weights.axes[2].labels
    content = list[dict[str, Any]]()
    rows = list[tuple[str, ...]]()
    for at in range(config.n_layer) if block is None else [block]:
        for expert, name in enumerate(names):
            tokens = tokens_of_expert(weights, at, expert)[:TOKENS]
            share = shares[at, expert]
            content.append(
                {"block": at, "expert": expert, "name": name, "load": share, "tokens": tokens}
            )
            rows.append(
                (
                    f"blocks.{at}.mlp.expert.{expert}",
                    f"{share:.1%}",
                    " ".join(repr(token.token) for token in tokens),
                )
            )
    each = (
        f"each token passes {config.n_active} of {config.n_expert} experts: "
        f"{even_load(config):.1%} each if all were used alike"
    )
    return CommandOutput(content, [each, Table(rows, ("", "of the tokens", "most often for"))])


@command(180)
def lens(
    lm: LanguageModel,
    prompt: str,
    top: int = 5,
    blocks_only: bool = False,
    kind: LensKind = "logit",
    fit_to: File | None = None,
    lens: File | None = None,
    out: File | None = None,
) -> CommandOutput:
    """What a model would guess after each layer: its head applied to the stream there.

    Args:
        prompt: what the model reads; of an encoder–decoder the source.
        top: how many of the likeliest tokens.
        blocks_only: only after each block, not within it: quicker with a large model.
        fit_to: a text file to fit it to; default: the data held out of training, or what the model
            writes itself where its data are not known.
        lens: instead of a fit: a published Jacobian lens, as jlens, Neuronpedia and TransformerLens
            have them.
        out: write the fitted lens as such a file.
    """
    if (lens is not None and kind != "jacobian") or (out is not None and kind == "logit"):
        raise UsageError(
            "--lens reads a Jacobian lens, and --out writes a fitted one: give --kind jacobian too"
        )
    if lm.model.config.kind == "classifier":
        raise UsageError(
            f"{lm.name} is a classifier and guesses no token: use classify {lm.name} --text TEXT"
        )
    how: dict[str, Any] = {"kind": kind, "fitted_to": text_of(fit_to)}
    if lens is not None:
        how = {"kept": lm.read_lens(lens)}
    seen = lm.lens(prompt, top=top, blocks_only=blocks_only, **how)
    if out is not None:
        lm.write_lens(out, kind, text_of(fit_to))
    likely = [  # [layer][position]
        [list(zip(*cell, strict=True)) for cell in zip(*layer, strict=True)]
        for layer in zip(seen.top.tolist(), seen.probability.tolist(), strict=True)
    ]
    layers = [layer.name for layer in seen.layers]
    content = {
        "tokens": [token_text(lm, i) for i in seen.ids],
        "layers": layers,
        "top": [
            [[{"token": token_text(lm, i), "probability": p} for i, p in cell] for cell in layer]
            for layer in likely
        ],
        "final_error": seen.final_error,
    }
    said = ["  ".join(f"{lm.tokenizer.label(i)} {p:.1%}" for i, p in layer[-1]) for layer in likely]
    end = f"the last row differs from the model's own logits by at most {seen.final_error:.2g}"
    table = Table(zip(layers, said, strict=True))
    return CommandOutput(content, ["after the last token:", table, end, *_of_fitted(lm, how)])


def _of_fitted(lm: LanguageModel, how: dict[str, Any]) -> list[str]:
    """How good a fitted lens is beside the logit lens, in sentences."""
    kind = how.get("kind", "logit")
    if kind == "logit":
        return []
    lens = lm.fitted_lens(kind, how["fitted_to"])
    return [lens.compare_lenses(lm.model, kind), lens.support]


@command(185)
def probe(
    lm: LanguageModel, label: Name, layer: Name = "all", corpus: File | None = None
) -> CommandOutput:
    """What linear probes read from the stream after each layer, beside a control task.

    Args:
        label: what the probe says of a token: case, word (the place in it), quotes, before-1 to
            before-4, or of its task, such as carry. With table the corpus is a CSV file with the
            columns text and label, the label that of a text's last token.
        layer: a layer, such as blocks.0.mlp; default: all.
    """
    probed = lm.probe(label, text_of(corpus))
    names = [layer.name for layer in probed.layers]
    if layer not in ("all", *names):
        raise UsageError(f"{lm.name} has no layer {layer}: give all, or one of {', '.join(names)}")
    rows = [
        row
        for row in zip(names, probed.accuracy.tolist(), probed.control.tolist(), strict=True)
        if layer in ("all", row[0])
    ]
    cells = [(name, f"{right:.1%}", f"{control:.1%}") for name, right, control in rows]
    table = Table(cells, ("tokens whose label is right", "probe", "control task"))
    lines: Lines = [
        table,
        f"always saying the commonest of the {len(probed.classes)} labels: {probed.commonest:.1%}",
        probed.support,
    ]
    content = [dict(zip(("layer", "accuracy", "control"), row, strict=True)) for row in rows]
    return CommandOutput(content, [*lines, *([probed.said] if layer == "all" else [])])


@command(210)
def stream(lm: LanguageModel, prompt: str, position: int | None = None) -> CommandOutput:
    """The residual stream by layer: lengths, directions, and what each sublayer writes into it.

    Args:
        prompt: what the model reads; of an encoder–decoder the source.
        position: only of the token at this position; default: the median, and of cosines the mean,
            over all positions.
    """
    from gptviz.interp.reading.stream import cosines, lengths, shares

    if lm.model.config.kind == "classifier":
        raise UsageError(
            f"{lm.name} is a classifier: its stream is not read here; use classify {lm.name} "
            "--text TEXT"
        )
    seen = lm.stream(prompt)
    if position is not None:
        check_number(whole_number(0, len(seen.positions) - 1), "--position", position)

    def middle(row: list[float]) -> float:
        if position is None:
            return median(row)
        return row[position]

    tokens = [lm.tokenizer.piece(token) for token in seen.ids]
    layers = [layer.name for layer in seen.layers]
    length = lengths(seen, tokens).values.tolist()
    cosine = cosines(seen, position).values.tolist()
    size, along = shares(seen, tokens).values.tolist()
    turned = ["", *(f"{row[place]:.3f}" for place, row in enumerate(cosine[1:]))]
    sizes = (f"{middle(row):.4g}" for row in length)
    lines: Lines = [
        Table(
            zip(layers, sizes, turned, strict=True),
            ("after", "length", "cosine with the layer before"),
        )
    ]
    if seen.writers:
        rows = zip(seen.writers, map(middle, size), map(middle, along), strict=True)
        names = ("sublayer", "writes", "along the stream (both as shares of its length)")
        lines += [
            "",
            Table([(name, f"{wrote:.3f}", f"{share:+.3f}") for name, wrote, share in rows], names),
        ]
    content = {
        "tokens": tokens,
        "layers": layers,
        "length": length,
        "cosine": cosine,
        "sublayers": seen.writers,
    }
    return CommandOutput(content | {"size": size, "along": along}, lines)


@command(65)
def tokens(
    lm: LanguageModel, prompt: str | None = None, merges: bool = False, languages: bool = False
) -> CommandOutput:
    """How a text is cut into tokens, and what languages cost.

    Args:
        prompt: the text that is cut into tokens.
        merges: also the merges that made the tokens, in their order.
        languages: what the same sentences cost in eight languages, numbers and code.
    """
    if (prompt is None) != languages:
        raise UsageError("tokens takes --prompt TEXT or --languages, one of the two")
    if prompt is None:
        return _languages(lm)
    rows = [
        {
            "id": piece.id,
            "token": piece.label,
            "bytes": piece.data.hex(" "),
            "kind": piece.kind,
            "word": piece.word,
        }
        for piece in lm.pieces(prompt)
    ]
    columns = ("token", "id", "bytes", "kind")
    table = Table([[str(row[name]) for name in columns] for row in rows], columns)
    if not merges:
        return CommandOutput(rows, [table])
    merging = lm.tokenizer.merging(lm.tokenizer.encode(prompt).ids)
    if merging is None:
        raise UsageError(f"the tokens of {lm.name} are not all made by merges: leave --merges out")
    made = [
        pick_values(merge, "start", "middle", "end", "rank")
        | {"token": lm.tokenizer.label(merge.id)}
        for merge in merging.merges
    ]
    order = [
        (str(number), merge["token"], f"{merge['rank'] + 1:,}")
        for number, merge in enumerate(made, 1)
    ]
    return CommandOutput(
        {"tokens": rows, "merges": made},
        [table, "", Table(order, ("merge", "makes", "number in the list"))],
    )


def _languages(lm: LanguageModel) -> CommandOutput:
    from gptviz.text.datasets.languages import FIRST, examples
    from gptviz.text.tokenizers.pieces import cost

    costs = {name: cost(lm.tokenizer, text) for name, text in examples().items()}
    content = list[dict[str, Any]]()
    rows = list[list[str]]()
    usual = costs[FIRST].tokens
    for name, size in costs.items():
        about = {"text": name, **pick_values(size, "tokens", "tokens_per_word", "bytes_per_token")}
        content.append(about | {"not_in_the_vocabulary": size.lacking})
        if size.tokens_per_word is None:
            per_word = ""
        else:
            per_word = f"{size.tokens_per_word:.2f}"
        times = f"{size.tokens / usual:.2f}" if usual else ""
        rows.append(
            [
                name,
                str(size.tokens),
                times,
                per_word,
                f"{size.bytes_per_token:.2f}",
                str(size.lacking),
            ]
        )
    names = (
        "text",
        "tokens",
        f"{FIRST} = 1",
        "per word",
        "bytes per token",
        "not in the vocabulary",
    )
    return CommandOutput(content, [Table(rows, names)])
