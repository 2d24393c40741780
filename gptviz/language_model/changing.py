"""What changes in its guesses when parts of a language model are changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, takewhile

import torch

from gptviz.interp.changing import attribution_patching, patching
from gptviz.interp.changing import edits as unit_edits
from gptviz.interp.changing.ablation import NOT_COUNTED, Rows, loss, loss_with_each
from gptviz.interp.changing.before_after import Guess, guess_and_loss
from gptviz.interp.changing.before_after import guess as guess_of
from gptviz.interp.changing.corrupting import likeliest_answers, one_token_changed, rank_changes
from gptviz.interp.changing.edit import MEAN, Inputs
from gptviz.interp.changing.fewer_bits import FewerBits, divergences, errors, most_first, weight
from gptviz.interp.changing.patched_features import patch_named
from gptviz.interp.changing.patching import Patched, PromptPair
from gptviz.interp.changing.strength import STRENGTHS, losses_along
from gptviz.interp.changing.swaps import SWAP
from gptviz.interp.changing.weight_edits import WEIGHTS, quantisers
from gptviz.interp.over_prompts import AskedPrompt, How, Spread, measure_prompt, spread
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.labelled_array import LabelledArray
from gptviz.machine import progress
from gptviz.machine.errors import reason_of
from gptviz.machine.warning import warn_caller
from gptviz.model.lora import MergedTransformer
from gptviz.settings.kinds import Count
from gptviz.text.datasets.prompt_pairs import PromptRow
from gptviz.text.datasets.word_kinds import with_another_word

from .core import LoadedModel, data_title, decode_answer, read_reference, require, special_tokenizer
from .data import counted_rows, tested_rows
from .settings import check_settings

# The most bad rows of a list that a message names.
MOST_NAMED = 5


@check_settings
def fewer_bits(
    lm: LoadedModel, kind: str, prompt: str | None = None, *, matrix: str | None = None
) -> FewerBits:
    """What this model loses if its weights are kept in fewer bits: see
    `gptviz.interp.changing.fewer_bits`. The model with them is `lm.edited(f"weights={kind}")`.

    Args:
        kind: how a matrix is kept, such as "4bit.g32", "8bit.row" or "Q4_0": see
            `gptviz.model.quantising`.
        prompt: a text for the loss, and for how far each guess moves; without it, the loss is over
            held-out data, if they are here.
        matrix: the name of one matrix; all of them unless given.
    """
    if prompt is not None:
        require(lm, "decoder", "leave the prompt out, and the loss is over held-out data")
    twin = lm.edited(f"{matrix or WEIGHTS}={kind}")
    config = lm.model.config
    kept = quantisers(twin.changes, config)
    lost = FewerBits(
        twin.edits, weight(config, kept), most_first(errors(lm.model, twin.model, kept))
    )
    rows: list[Rows] = []
    if prompt is not None:
        ids = lm.inputs(prompt)[0]
        lost = replace(lost, divergence=divergences(lm.model, twin.model, ids.tolist()))
        if len(ids) > 1:
            targets = torch.cat((ids[1:], ids.new_tensor([NOT_COUNTED])))
            rows = [Rows(Inputs(ids[None]), targets[None])]
            lost = replace(lost, text="the prompt")
    else:
        # they are not here, or nobody knows what it was trained on
        with suppress(ValueError, OSError):
            rows = tested_rows(lm)["loss"]
            lost = replace(lost, text="held-out data")
    if rows:
        return replace(lost, loss=(loss(lm.model, rows), loss(twin.model, rows)))
    return lost


@check_settings
def swap(
    lm: LoadedModel,
    layer: str,
    one: str | int,
    other: str | int,
    strength: float = 1,
    *,
    lens: str = "",
) -> str:
    """The edit by which two tokens change places in the stream after a layer: see
    `gptviz.interp.changing.swaps`. The model with it is `lm.edited(lm.swap("blocks.1.mlp", "is",
    "are"))`.

    Args:
        layer: its name, as `lens` gives it.
        one: a token, as text or id, and so is `other`.
        strength: 0 changes nothing, and at 0.5 both tokens are alike.
        lens: the name of a fitted lens, `FittedLens.name`, which gives the directions of the
            tokens; the logit lens unless given.
    """
    called = ".".join(
        [SWAP, layer, str(lm.token(one)), str(lm.token(other)), *filter(None, [lens])]
    )
    return unit_edits.edit(f"{called}={strength:g}", lm.model.config).text


@check_settings
def guess(lm: LoadedModel, prompt: str) -> Guess:
    """The guess after `prompt`, and the loss over it (see `counted_rows`); of an encoder–decoder
    its answer's first token.
    """
    ((read, targets),) = counted_rows(lm, prompt)
    if lm.model.config.kind == "decoder":
        return guess_and_loss(lm.model, read, targets)
    return Guess(guess_of(lm.model, read.before_answer), loss(lm.model, [Rows(read, targets)]))


@check_settings
def losses_without(
    lm: LoadedModel,
    prompt: str | None = None,
    *,
    to: str = "zero",
    reference: str = "",
    most: Count = 2_048,
) -> dict[str, float]:
    """How much the loss of the model without edits rises if one head or MLP is switched off, for
    each by name.

    Args:
        prompt: what the loss is over, as in `counted_rows`.
        to: what takes the place of a piece: "zero", or its "mean" over a text.
        reference: this text.
        most: without a prompt, about how many tokens of the data held out are read.
    """
    lm = lm.original
    rows = counted_rows(lm, prompt, most)
    before = loss(lm.model, rows)
    read = read_reference(lm, reference) if to == MEAN else ()
    pieces = [unit_edits.edit_unit(unit, to) for unit in heads_and_mlps(lm.model.config)]
    each = loss_with_each(lm.model, rows, pieces, read)
    # a block at a time, so that a page is not drawn again for every head
    rises: dict[str, float] = {}
    for _, of_block in groupby(each, lambda one: one[0].unit.block):
        rises = rises | {edit.unit.name: without - before for edit, without in of_block}
        progress.show_so_far(rises)
    return rises


@check_settings
def pair(
    lm: LoadedModel,
    clean: str,
    corrupted: str,
    right: str | int | None = None,
    wrong: str | int | None = None,
) -> PromptPair:
    """Two prompts of the same number of tokens and their answers, for `patch`.

    For an encoder–decoder the prompts are sources: its decoder reads the beginning that both its
    answers have in common.

    Args:
        clean: the prompt that values are taken from.
        corrupted: the prompt that they are put into.
        right: a token, as text or id, or a label of a classifier; by default the likeliest after
            the clean prompt.
        wrong: the same for the corrupted prompt; if that is `right`, the likeliest other one.
    """
    texts = (clean, corrupted)
    if lm.model.config.kind == "encoder-decoder":
        sources = [tuple(lm.source(text).tolist()) for text in texts]
        common = takewhile(
            lambda both: both[0] == both[1],
            zip(*(decode_answer(lm, text)[0] for text in texts), strict=False),
        )
        written = (special_tokenizer(lm).start, *(token for token, _ in common))[
            : lm.model.config.context_length
        ]
        patching.check_lengths(len(sources[0]), len(sources[1]))
        unanswered = PromptPair(written, written, 0, 0, sources[0], sources[1])
    else:
        whole = [lm.encode(text) for text in texts]
        patching.check_lengths(len(whole[0]), len(whole[1]))
        seen = [tuple(lm.seen(ids).tolist()) for ids in whole]
        unanswered = PromptPair(seen[0], seen[1], 0, 0)
    likeliest = likeliest_answers(lm.model, unanswered)
    return replace(
        unanswered,
        right=likeliest[0] if right is None else lm.token(right),
        wrong=likeliest[1] if wrong is None else lm.token(wrong),
    )


@check_settings
def patch(
    lm: LoadedModel,
    clean: str,
    corrupted: str,
    right: str | int | None = None,
    wrong: str | int | None = None,
    what: str = "resid_pre",
    *,
    exact: bool = True,
) -> Patched:
    """How much of the answer comes back if a piece of what the model computed for the clean prompt
    is put into the pass over the corrupted one, for each piece: see
    `gptviz.interp.changing.patching`, and `pair` for the prompts and their answers.

    Args:
        what: the kind of piece, such as "resid_pre" or "attention.z": see
            `gptviz.interp.changing.patchable`; or "dictionary.NAME", each feature of a dictionary,
            which are all computed: see `gptviz.interp.changing.patched_features`.
        exact: compute every patch; else guess them from a few backward passes, and check that with
            some patches: the result is a `Preview` (`gptviz.interp.changing.attribution_patching`),
            which says how far it can be trusted.
    """
    prompts = pair(lm, clean, corrupted, right, wrong)
    if not exact:
        return attribution_patching.preview(lm.model, prompts, [what])[what]
    return patch_named(lm.model, prompts, what)


@check_settings
def corrupted(lm: LoadedModel, ids: Sequence[int], seen: Sequence[int] | None = None) -> str:
    """A prompt that differs from `ids` in one token, and has another answer; empty if none was
    found. Only the end of them that the model sees (or `seen`) is read. For a model from elsewhere,
    one word is replaced by another of its kind, or else by the word that the model found likeliest
    in its place: any other token would leave nonsense.
    """
    if seen is None:
        read = lm.seen(torch.tensor(ids)).tolist()
    else:
        read = list(seen)
    before = list(ids[: len(ids) - len(read)])
    if lm.card.imported_from is None:
        prompts = one_token_changed(lm.model, read)
    else:
        texts = with_another_word(lm.tokenizer.decode(ids[lm.tokenizer.text_slice(ids)]))
        others = [list(lm.tokenizer.encode(text).ids) for text in texts]
        fitting = [
            tuple(other[len(before) :])
            for other in others
            if len(other) == len(ids) and other[: len(before)] == before
        ]
        if fitting:
            prompts = rank_changes(lm.model, read, fitting)
        else:
            prompts = one_token_changed(lm.model, read, _word_for_word(lm, read))
    for changed in prompts:
        whole = [*before, *changed]
        text = lm.tokenizer.decode(whole[lm.tokenizer.text_slice(whole)])
        # Not every row of tokens is what some text is read as.
        if lm.tokenizer.encode(text).ids == whole:
            return text
    return ""


def _word_for_word(lm: LoadedModel, ids: Sequence[int]) -> Callable[[int, int], bool]:
    """Whether the token at a place of `ids` and another one are both a whole word."""
    labels = [lm.tokenizer.label(token) for token in ids]

    def is_word(label: str) -> bool:
        return label[:1] == "␣" and label[1:].isalpha()

    def fits(place: int, token: int) -> bool:
        goes_on = place + 1 < len(labels) and labels[place + 1][:1].isalpha()
        return is_word(labels[place]) and not goes_on and is_word(lm.tokenizer.label(token))

    return fits


@check_settings
def example_pairs(lm: LoadedModel, count: Count = 20, part: str = "") -> list[PromptRow]:
    """Pairs of prompts for `over_prompts`, `count` of them or fewer: held-out prompts of the task
    that the model has learned, of which it knows the answer, and the same with one token changed so
    that it answers otherwise. `part` names one of the tasks that this task mixes.
    """
    if lm.task is None:
        raise ValueError(
            f"{lm.name} has not learned a task that writes prompts: give a list of them"
        )
    pairs: list[PromptRow] = []
    for prompt, right in lm.task.example_prompts(3 * count, part):
        ids = lm.tokenizer.encode(prompt).ids
        with torch.inference_mode():
            is_right = (
                int(lm.model(lm.seen(torch.tensor(ids))[None].to(lm.device))[0, -1].argmax())
                == right
            )
        if is_right and len(pairs) < count and (changed := corrupted(lm, ids)):
            pairs.append(PromptRow(prompt, changed, lm.tokenizer.label(right)))
    return pairs


@check_settings
def over_prompts(lm: LoadedModel, rows: Sequence[PromptRow], how: How = "patch") -> Spread:
    """What a list of prompts says of every head and every MLP: see `gptviz.interp.over_prompts`. If
    some rows do not fit the decoder, the ValueError names their lines.

    Args:
        rows: the prompts, such as `gptviz.text.datasets.prompt_pairs.prompt_rows` reads from a
            file, or `example_pairs`.
        how: "patch", for which each row needs a corrupted prompt; "attribute" or "switch off".
    """
    each = list[dict[str, float]]()
    for one in each_prompt(lm, rows, how):
        each.append(one)
        progress.show_so_far(spread(each, how))
    return spread(each, how)


@check_settings
def each_prompt(
    lm: LoadedModel, rows: Sequence[PromptRow], how: How = "patch"
) -> Iterator[dict[str, float]]:
    """What each prompt of a list says of every head and every MLP, by name, one after the other;
    as `over_prompts`.
    """
    asked = _read_rows(lm, rows, how)

    def values(row: PromptRow, one: AskedPrompt) -> dict[str, float]:
        try:
            return measure_prompt(lm.model, one, how)
        except ValueError as error:
            raise ValueError(f"{row.place or repr(row.clean)}: {error}") from None

    read = (values(*each) for each in zip(rows, asked, strict=True))
    yield from progress.report_each(read, len(rows), "prompt")


def _read_rows(lm: LoadedModel, rows: Sequence[PromptRow], how: How) -> list[AskedPrompt]:
    """The rows of a list as this model reads them."""
    require(lm, "decoder", "lists of prompts are for decoders")
    if not rows:
        raise ValueError("the list has no prompts")
    prompts = list[AskedPrompt]()
    wrong = list[str]()
    for row in rows:
        try:
            prompts.append(_asked_one(lm, row))
            if how == "patch" and not row.corrupted:
                raise ValueError("there is no corrupted prompt, which a patch needs")
            if (prompts[-1].wrong is None) != (prompts[0].wrong is None):
                raise ValueError(
                    "only some rows have a wrong answer or a corrupted prompt: give all of them "
                    "one, or none"
                )
        except ValueError as error:
            wrong.append(f"{row.place or repr(row.clean)}: {error}")
    if wrong:
        if len(wrong) > MOST_NAMED:
            more = f"; and {len(wrong) - MOST_NAMED:,} others"
        else:
            more = ""
        raise ValueError("; ".join(wrong[:MOST_NAMED]) + more)
    return prompts


def _asked_one(lm: LoadedModel, row: PromptRow) -> AskedPrompt:
    for text in filter(None, (row.clean, row.corrupted)):
        if (encoding := lm.tokenizer.encode(text)).unknown:
            raise ValueError(encoding.unknown_sentence())
    right, wrong = (_token_of(lm, text) if text else None for text in (row.right, row.wrong))
    if row.corrupted:
        prompts = pair(lm, row.clean, row.corrupted, right, wrong)
        return AskedPrompt(prompts.clean, prompts.right, prompts.wrong, prompts.corrupted)
    ids = tuple(lm.seen(lm.encode(row.clean)).tolist())
    if right is None:
        right = likeliest_answers(lm.model, PromptPair(ids, ids, 0, 0))[0]
    return AskedPrompt(ids, right, wrong)


def _token_of(lm: LoadedModel, text: str) -> int:
    """As `lm.token`; also by the visible form of a token."""
    try:
        return lm.token(text)
    except ValueError:
        if text not in (labels := lm.tokenizer.labels()):
            raise
        return labels.index(text)


@check_settings
def along_strength(
    lm: LoadedModel, strengths: Sequence[float] = STRENGTHS, most: Count = 2_048
) -> LabelledArray:
    """Of a LoRA adapter the loss [text, strength] in nats per token (0 is the base, 1 what was
    trained), without other edits, on about `most` tokens of the data that were held out when it was
    trained, and of its base: what is learned from one text, and what is forgotten of the other. A
    warning names data that are not on this machine, which are left out.
    """
    model = lm.original.model
    base = lm.base
    if base is None or not isinstance(model, MergedTransformer):
        raise ValueError(f"{lm.name} is no LoRA adapter: there is no strength to change")
    texts = dict[str, list[Rows]]()
    missing = list[str]()
    for one in (lm, base):
        try:
            texts[data_title(one)] = tested_rows(one, most)["loss"]
        except (ValueError, OSError) as error:
            missing.append(f"{data_title(one)} is left out: {reason_of(error)}")
    if not texts:
        raise ValueError("; ".join(missing))
    for line in missing:
        warn_caller(line)
    return losses_along(model, texts, strengths)
