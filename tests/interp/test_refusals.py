"""What an analysis cannot be asked for is refused, with what is wrong by its name or number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from gptviz.interp import compare
from gptviz.interp.changing import edits, fewer_bits, patching
from gptviz.interp.changing.patching import PatchedPiece, PromptPair
from gptviz.interp.explaining import attribution, circuit, context_use, decision
from gptviz.interp.explaining.circuit_reads import Frozen
from gptviz.interp.explaining.decomposition import Stream
from gptviz.interp.reading import (
    attention,
    costs,
    cross_attention,
    experts,
    fitted_lens,
    gradients,
    guessing,
    lens,
    next_token,
    positions,
    probes,
    stream,
)
from gptviz.interp.reading import classification as labels
from gptviz.interp.reading.anatomy.boxes import lines
from gptviz.interp.trace import run
from gptviz.interp.units import by_token, head_scores, neurons
from gptviz.interp.units.head_activity import observable_heads
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.model import Transformer
from gptviz.model.kinds import MODEL_KINDS
from gptviz.model.parts.attention import AttentionBase
from tests.hand_built import induction_circuit
from tests.interp.test_compare import side
from tests.tiny import VOCAB, scrambled, some_ids, tiny

TWO_TEXTS = some_ids()
TEXT = TWO_TEXTS[0]
IDS = TEXT.tolist()
DECODER, PAIR, NO_BLOCKS = (
    scrambled(tiny(**changes)) for changes in ({}, {"n_encoder_layer": 1}, {"n_layer": 0})
)
CLASSIFIER, FIRST = (
    scrambled(tiny(head=head, n_label=3, mask="full")) for head in ("mean", "first")
)
ROTARY = scrambled(tiny(positions="rotary", d_head=4))
DAMAGED = scrambled(tiny())
torch.nn.init.constant_(DAMAGED.embed.weight, math.nan)
ROWS = list(some_ids(batch=10))
KINDS = [["a", "b"] * 4] * 10
PROMPTS = PromptPair((1, 2, 3), (1, 2, 4), 0, 1)
INDUCTION = torch.tensor([3, 5, 7, 1, 8, 2, 9, 5])


def edited(model: Transformer, text: str) -> Transformer:
    return edits.edit_model(model, edits.edits([text], model.config))


REFUSED: list[tuple[str, Callable[[], object]]] = [
    # what is changed
    (
        "positions: this model has no positions",
        lambda: edits.edit("positions", tiny(positions="none")),
    ),
    ("blocks.0.mlp=mean needs a reference text", lambda: edited(DECODER, "blocks.0.mlp=mean")),
    ("names no way to keep weights", lambda: edits.edits(["weights"], tiny())),
    ("names no way to keep weights", lambda: edits.edits(["weights=mean"], tiny())),
    (
        r"no matrix .*; there are embed\.weight, blocks\.N",
        lambda: edits.edits(["blocks.9.mlp.up.weight=Q4_0"], tiny()),
    ),
    (
        "no matrix of this model",
        lambda: edits.edits(["positions.table.weight=Q4_0"], tiny(positions="learned")),
    ),
    (
        "no matrix of this model",
        lambda: edits.edits(["blocks.0.mlp_residual.norm.weight=Q4_0"], tiny()),
    ),
    (r"^embed\.weight: .*not finite", lambda: edited(DAMAGED, "weights=4bit.g32")),
    (
        "do not have the same matrices",
        lambda: fewer_bits.errors(DECODER, scrambled(tiny(d_mlp=24))),
    ),
    (
        "clean prompt has 3 tokens and the corrupted prompt 2: .* same number",
        lambda: PromptPair((1, 2, 3), (1, 2), 0, 1),
    ),
    ("have no tokens", lambda: PromptPair((), (), 0, 1)),
    (
        "clean source has 1 token and the corrupted source 2",
        lambda: PromptPair((1,), (2,), 0, 1, (1,), (1, 2)),
    ),
    ("only one of the two prompts has a source", lambda: PromptPair((1,), (2,), 0, 1, (1,))),
    (
        r"'resid_mid' cannot be patched in this model; there are resid_pre, resid_post, "
        r"attention\.out",
        lambda: patching.patch(scrambled(tiny(d_mlp=0)), PROMPTS, "resid_mid"),
    ),
    ("no blocks", lambda: patching.patch(NO_BLOCKS, PROMPTS)),
    (
        "wrong answer is 99; .* numbered from 0 to 10",
        lambda: patching.patch(DECODER, replace(PROMPTS, wrong=99)),
    ),
    ("give a source to a model with an encoder", lambda: patching.patch(PAIR, PROMPTS)),
    (
        r"nothing called 'blocks\.7",
        lambda: patching.answers(DECODER, PROMPTS, [[PatchedPiece("blocks.7.mlp.out", 0)]]),
    ),
    (
        r"computes nothing called 'blocks\.7\.mlp\.out'",
        lambda: run(
            DECODER,
            TWO_TEXTS,
            edits={"embed": torch.zeros_like, "blocks.7.mlp.out": torch.zeros_like},
        ),
    ),
    (
        "nothing called 'positions'",
        lambda: run(ROTARY, TWO_TEXTS, edits={"positions": torch.zeros_like}),
    ),
    # what explains a guess
    ("under a first head a label's logit is no sum", lambda: attribution.attribute(FIRST, IDS)),
    (
        "there is no token -1: they are counted from 0 to 10",
        lambda: attribution.attribute(DECODER, IDS, -1),
    ),
    (
        "there is no token 11: they are counted from 0 to 10",
        lambda: attribution.attribute(DECODER, IDS, VOCAB),
    ),
    ("there is no token 11", lambda: attribution.attribute(DECODER, IDS, 0, against=VOCAB)),
    ("there is no token -1", lambda: attribution.attribute(DECODER, IDS, 0, against=-1)),
    *(
        (
            said,
            lambda asked=asked: circuit.circuit(
                induction_circuit(), INDUCTION, **{"position": 7, "token": 7} | asked
            ),
        )
        for said, asked in {
            "no position 8": {"position": 8},
            "ids of tokens go from 0 to 9": {"token": 10},
            "against is -1": {"against": -1},
            "their difference is 0": {"against": 7},
            "share is 0.0": {"share": 0.0},
            "share is nan": {"share": math.nan},
        }.items()
    ),
    ("classifier", lambda: Frozen(CLASSIFIER, TEXT, 3)),
    ("first head the logits are no sum over the tokens", lambda: labels.classify(FIRST, TEXT)),
    ("single", lambda: decision.left_out(CLASSIFIER, TEXT[:1])),
    *(
        ("they must be from 0 to 7", lambda rows=rows: Stream(DECODER, IDS, rows))
        for rows in ([], [8], [-1])
    ),
    (
        "'mlp' reads nothing from the stream; readers are blocks.0.attention, blocks.0.mlp",
        lambda: Stream(DECODER, IDS).pull("mlp", torch.zeros(8, 12)),
    ),
    ("no text to measure", lambda: context_use.by_position(DECODER, [])),
    ("at least 2 are needed", lambda: context_use.by_position(DECODER, [[1, 2], [3]])),
    (
        r"the windows are \[0, 2\]; each must have 1 token or more",
        lambda: context_use.by_window(DECODER, IDS, [0, 2]),
    ),
    (
        "no token 7 to leave out: .* counted from 0 to 6",
        lambda: context_use.left_out(DECODER, IDS, places=[7]),
    ),
    (
        "how is 'eaten'; it must be one of replaced, removed",
        lambda: context_use.left_out(DECODER, IDS, "eaten"),
    ),  # type: ignore[arg-type]
    # what is read
    (
        "no line of AttentionBase.read_values has 'tap",
        lambda: lines(AttentionBase.read_values, 'tap("z"'),
    ),
    ("no blocks", lambda: attention.patterns(NO_BLOCKS, IDS)),
    ("source", lambda: attention.patterns(PAIR, IDS)),
    (
        "this model has no cross-attention",
        lambda: attention.read_attention(DECODER, IDS, part="cross_attention"),
    ),
    (
        "this model has no blocks",
        lambda: attention.read_attention(NO_BLOCKS, IDS, part="attention"),
    ),
    ("no cross-attention", lambda: cross_attention.read_translation(DECODER, IDS, IDS)),
    ("9 tokens do not fit", lambda: cross_attention.read_translation(PAIR, (1,) * 9, IDS)),
    *(
        (
            f"is not a classifier: it is {MODEL_KINDS[model.config.kind].with_article}",
            lambda use=use, model=model: use(model),
        )
        for use in (
            lambda model: labels.classify(model, TEXT),
            lambda model: labels.label_probabilities(model, TWO_TEXTS),
        )
        for model in (DECODER, PAIR)
    ),
    ("no token to classify", lambda: labels.classify(CLASSIFIER, TEXT[:0])),
    ("9 tokens do not fit", lambda: labels.classify(CLASSIFIER, some_ids(9)[0])),
    *(("batch is", lambda batch=batch: costs.costs(tiny(), batch, 1)) for batch in (0, 1.5, True)),
    *(
        ("this model reads from 1 to 8", lambda tokens=tokens: costs.costs(tiny(), 1, tokens))
        for tokens in (0, 9)
    ),
    ("no experts: its MLPs are whole", lambda: experts.routing(DECODER, TEXT, ["x"] * 8)),
    ("'logit'", lambda: fitted_lens.fit(DECODER, ROWS, "logit")),
    ("decoder with blocks", lambda: fitted_lens.fit(NO_BLOCKS, ROWS, "tuned")),
    ("too short", lambda: fitted_lens.fit(DECODER, [TEXT[:1]], "tuned")),
    ("no blocks", lambda: gradients.sizes(NO_BLOCKS, TWO_TEXTS, TWO_TEXTS)),
    *(
        (f"cannot be {bits}", lambda bits=bits: guessing.bits_of_guesses(bits, 65))
        for bits in (0.5, math.nan)
    ),
    *(
        ("at least one must be read", lambda first=first: guessing.play(DECODER, (1, 2, 3), first))
        for first in (0, 3)
    ),
    ("decoder", lambda: guessing.play(CLASSIFIER, (1, 2, 3), 1)),
    *(("classifier", lambda see=see: see(CLASSIFIER, IDS)) for see in (lens.lens, stream.stream)),
    *(("no token", lambda see=see: see(DECODER, [])) for see in (lens.lens, stream.stream)),
    ("no next token", lambda: next_token.logits_after(CLASSIFIER, (3, 1), slice(None))),
    ("no learned positions", lambda: positions.vectors(ROTARY, "learned")),
    *(
        (
            f"{kind} positions add no number to a score",
            lambda kind=kind: positions.score_bias(DECODER, kind),
        )
        for kind in ("learned", "relative", "none")
    ),
    ("choose one of case", lambda: probes.text_labels("a text", "colour")),
    ("at least two kinds", lambda: probes.probe(DECODER, ROWS, [["same"] * 8] * 10)),
    ("needs 20 different tokens", lambda: probes.probe(DECODER, ROWS[:2], KINDS[:2])),
    ("overflow", lambda: probes.probe(DAMAGED, ROWS, KINDS)),
    # single heads and neurons, and two models
    ("no unembedding", lambda: by_token.heads_for(CLASSIFIER, 0)),
    *(
        ("cannot be repeated", lambda asked=asked: head_scores.repeated_tokens(*asked))
        for asked in ((1, 8), (8, 3))
    ),
    (
        "at least 2 tokens",
        lambda: list(
            head_scores.losses_without(DECODER, some_ids(1), heads_and_mlps(DECODER.config))
        ),
    ),
    ("no blocks", lambda: head_scores.head_scores(NO_BLOCKS, TWO_TEXTS)),
    ("no text", lambda: head_scores.scores_over_texts(DECODER, [])),
    ("no neurons in block 2", lambda: neurons.observable_neurons(DECODER, 2)),
    ("no neurons in block 0", lambda: neurons.observable_neurons(NO_BLOCKS, 0)),
    ("no neurons in block 0", lambda: neurons.observable_neurons(scrambled(tiny(d_mlp=0)), 0)),
    ("no heads in block 2", lambda: observable_heads(DECODER, 2)),
    (
        "no unembedding",
        lambda: neurons.promoted_tokens(CLASSIFIER, neurons.columns(CLASSIFIER, 0)[:, 4]),
    ),
    (
        "have 0 tokens in common",
        lambda: compare.embeddings(
            side(tiny()), replace(side(tiny()), vocabulary=tuple(map(str, range(VOCAB))))
        ),
    ),
    (
        "the vocabulary of B has no token 'word 3'",
        lambda: compare.attribution(
            side(tiny()), replace(side(tiny()), vocabulary=("x",) * VOCAB), "word 3"
        ),
    ),
    ("no head 2 in block 1", lambda: compare.attention(side(tiny()), side(tiny(n_head=2)), 1, 2)),
]


@pytest.mark.parametrize(("said", "asked"), REFUSED, ids=[said for said, _ in REFUSED])
def test_what_cannot_be_asked_for_is_refused(said: str, asked: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=said):
        asked()
