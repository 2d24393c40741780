"""Plans: experiments with an architecture, the data and recipe it is trained with by default, and a
number to reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gptviz.data.registry import source_named
from gptviz.data.source import Source
from gptviz.model import PRESETS, Config, change_config
from gptviz.model.presets import RUNGS
from gptviz.text import Tokenizer
from gptviz.train.recipe import Recipe

from . import checkpoints
from .run import RunSpec, prepare

TokenizerKind = Literal["characters", "bpe", "words"]


@dataclass(frozen=True)
class Target:
    """A number that was published for this experiment."""

    #: "validation_loss" (in nats per token), "perplexity" (the exponential of that) or "parameters"
    quantity: Literal["validation_loss", "perplexity", "parameters"]
    value: float  #: the number
    by: str  #: who published it
    #: whether the number itself is to be reached; otherwise a better one also counts
    exact: bool = False

    @property
    def quantity_name(self) -> str:
        """The quantity in one word: "loss", "perplexity" or "parameters"."""
        return self.quantity.removeprefix("validation_")

    def __str__(self) -> str:
        return f"{self.quantity_name} {self.value:,g}"


@dataclass(frozen=True)
class Plan:
    """An experiment: an architecture, data and a recipe."""

    preset: str  #: the architecture
    sentence: str  #: what the experiment is and what to look at
    recipe: Recipe  #: how it is trained
    #: the name of a task or a corpus; instead of "tiny-shakespeare" any text can be used
    data: str = "tiny-shakespeare"
    #: how a text becomes tokens; tasks have their own tokenizer instead
    tokenizer: TokenizerKind = "characters"
    fraction: float = 0.9  #: the share of a text that is trained on
    target: Target | None = None  #: a published number
    #: the plans whose loss curves are compared with that of this plan
    related: tuple[str, ...] = ()
    begin: str | None = None  #: for finetuning, the name of the plan whose model it begins with
    #: fields of the architecture that differ from the preset's
    changes: tuple[tuple[str, object], ...] = ()

    @property
    def name(self) -> str:
        """The plan's name in `PLANS`; the name of its preset if it is not there."""
        return next((name for name, plan in PLANS.items() if plan == self), self.preset)

    @property
    def config(self) -> Config:
        """The architecture, before the tokenizer determines the size of its vocabulary."""
        return change_config(PRESETS[self.preset], **dict(self.changes))

    def source(self) -> Source:
        """The data of the plan."""
        return source_named(self.data, self.fraction)

    def learn_tokenizer(self, source: Source) -> Tokenizer:
        """The tokenizer of a task, or one that is learned from a text."""
        return source.tokenizer(self.tokenizer, PRESETS[self.preset].vocab_size)

    def prepare(
        self,
        name: str,
        *,
        source: Source | None = None,
        recipe: Recipe | None = None,
        changes: Mapping[str, object] | None = None,
        tokenizer: Tokenizer | None = None,
        begin: str | None = None,
        about: Mapping[str, Any] | None = None,
        store: Literal["float32", "float16"] = "float32",
        **options: Any,
    ) -> Path:
        """Write a run of this plan called `name`, and return its folder; `training.train` trains
        it.

        Args:
            source: the data; default: the plan's.
            recipe: the recipe; default: the plan's.
            changes: fields of the architecture to change.
            tokenizer: a tokenizer to use unchanged; default: one is learned.
            begin: the model to begin with, instead of fresh weights; the run has its architecture
                and tokenizer.
            about: more keys of the card: "command", and "preset" for an experiment that is no plan.
            store: the type its weights are stored in.
            options: those of `run.prepare`.

        Raises:
            ValueError: the arguments do not fit together; the message says what to change.
            RunError: as in `run.prepare`.
            CheckpointError: as in `run.prepare`, or the model to begin with cannot be opened.
        """
        source = self.source() if source is None else source
        recipe = self.recipe if recipe is None else recipe
        begin = begin or self.begin
        initial = None
        base = None
        if begin is not None:
            if changes or tokenizer:
                raise ValueError(
                    f"a run that begins with the model {begin} has its architecture and tokens: "
                    "change neither"
                )
            base = checkpoints.find(begin)
            opened = checkpoints.load(base)
            initial = opened.model
            tokenizer = opened.tokenizer
            config = opened.model.config
        else:
            if tokenizer is None:
                tokenizer = self.learn_tokenizer(source)
            else:
                tokenizer = tokenizer
            config = change_config(source.fit_config(self.config, tokenizer), **(changes or {}))
        described = {"preset": self.name, "architecture": self.preset, **(about or {})}
        if self.target is not None:
            described["target"] = asdict(self.target)
        spec = RunSpec(
            name=name,
            config=config,
            tokenizer=tokenizer,
            source=source,
            recipe=recipe,
            about=described,
            initial=initial,
            base=base,
            store=store,
        )
        return prepare(spec, **options)


_GE = "J. Ge, “Understanding Transformer Architecture by Building GPT” (2023)"
_SINAI = "L. Sinai, “Generative transformer from first principles in Julia” (2024)"
_CHANG = "H. Chang, “Building a Transformer From Scratch” (2024)"
_NANOGPT = "A. Karpathy, nanoGPT (2022), 10.7 million parameters on a data-centre GPU"

_SHAKESPEARE = Recipe(
    minutes=28,
    batch_size=16,
    optimiser="muon",
    learning_rate=5e-3,
    schedule="linear",
    final_rate=0.0,
)
_LADDER = Recipe(steps=10_000, batch_size=16, learning_rate=1e-3, weight_decay=0.01, beta2=0.999)
_RUNGS = tuple(f"ladder-{number}" for number in range(len(RUNGS)))
# Ten passes over the text, as in the original. Muon with a linear schedule to 0 reaches a lower
# loss than the original's Adam at 0.01. So small a model cannot learn the text by heart, so dropout
# would only slow it down.
_GENERATOR = Recipe(
    steps=5_000,
    batch_size=32,
    optimiser="muon",
    learning_rate=1e-2,
    schedule="linear",
    final_rate=0.0,
    weight_decay=0.01,
)
_NO_DROPOUT = (("dropout", 0.0),)
# As small as its snapshots allow: eight of each model ship. So small a model cannot learn the text
# by heart, as above.
_SMALL = (("d_model", 64), *_NO_DROPOUT)
_FEW = Recipe(steps=500, batch_size=16, learning_rate=1e-3)
# An adapter has few numbers and begins far from where it ends: it takes a learning rate ten times
# as high, and no decay.
_LORA = replace(_FEW, learning_rate=1e-2, weight_decay=0.0, lora_rank=4)
_TASK = Recipe(steps=3_000, batch_size=64, optimiser="muon", learning_rate=4e-3, evaluations=30)
# On a machine that also does other work, measured times say little: so nothing is chosen by time.
_SENTENCES = replace(
    _TASK, steps=1_500, learning_rate=6e-3, precision="float32", compile="no", snapshots=2
)
# What is to be read weight by weight: two blocks, and a norm that lets a 0 in the stream be a 0.
_FEW_WEIGHTS = (("n_layer", 2), ("d_mlp", 64), ("norm", "rmsnorm"), ("tied", False))
_REVERSAL = replace(_TASK, steps=6_000)
# Probabilities are to come out as the share in the data. A rate that falls to 0 and no weight decay
# let them: with Muon and a cosine to a tenth they ended up to two points away, with these at most
# one.
_JOBS = Recipe(
    steps=1_500,
    batch_size=64,
    learning_rate=3e-3,
    schedule="linear",
    final_rate=0.0,
    weight_decay=0.0,
    precision="float32",
    compile="no",
    evaluations=20,
    snapshots=1,
)
# Every batch has new sources, so nothing can be learned by heart, and dropout would only slow
# training down. AdamW answers 99 % of the dates correctly after 1,500 steps; Muon at 0.01 does not
# use the source by then.
_PAIRS = Recipe(
    steps=4_000,
    batch_size=64,
    learning_rate=5e-3,
    beta2=0.98,
    precision="float32",
    compile="no",
    evaluations=20,
    snapshots=1,
)
# Ten passes over ten thousand reviews. The strong weight decay acts most on rare words. Without it
# the model learns them by heart: it is right as often, but far too certain.
_LABELS = Recipe(steps=1_500, batch_size=64, learning_rate=1e-3, weight_decay=5.0)
_MEAN = (("head", "mean"),)
# For some thousand short texts of the user's own: measured in benchmarks/classifiers.md. Without
# blocks and norms the model is linear in the words, as the baseline is. A strong weight decay, and
# leaving out three words in ten at each step, keep it from learning the texts by heart. A block of
# attention made it worse on some thousand texts, so the plan has none.
_OWN_TEXTS = Recipe(
    steps=1_000, batch_size=64, learning_rate=3e-3, weight_decay=1.5, label_smoothing=0.1
)
_COUNTS_WORDS = (
    ("head", "sum"),
    ("n_layer", 0),
    ("positions", "none"),
    ("residual", "plain"),
    ("dropout", 0.0),
    ("token_dropout", 0.3),
)

PLANS: dict[str, Plan] = {
    "shakespeare": Plan(
        "shakespeare",
        "The best character model that a laptop trains in half an hour.",
        _SHAKESPEARE,
        target=Target("validation_loss", 1.4697, _NANOGPT),
        related=("llama-tiny", "neox-tiny"),
    ),
    "llama-tiny": Plan(
        "llama-tiny",
        "As many weights as shakespeare, built as Llama is: RMSNorm, a gated MLP, no biases, and "
        "one head of keys for three of "
        "queries. Look on Attention at heads that share their keys.",
        _SHAKESPEARE,
        related=("shakespeare", "neox-tiny"),
    ),
    "neox-tiny": Plan(
        "neox-tiny",
        "As many weights as shakespeare, built as GPT-NeoX is: attention and MLP side by side, "
        "and rotary positions on a quarter "
        "of each head. Look on Positions at the numbers that do not turn.",
        _SHAKESPEARE,
        related=("shakespeare", "llama-tiny"),
    ),
    "generator": Plan(
        "generator",
        "A small post-norm decoder: watch its positions and its map of characters take shape.",
        _GENERATOR,
        fraction=0.95,
        target=Target("perplexity", 6.3, _SINAI),
        related=("generator-unmasked",),
        changes=_NO_DROPOUT,
    ),
    "generator-unmasked": Plan(
        "generator",
        "The same without the mask, so that it sees the answers. The loss falls far lower, but "
        "the text does not get better.",
        _GENERATOR,
        fraction=0.95,
        related=("generator",),
        changes=(*_NO_DROPOUT, ("mask", "full")),
    ),
    **{
        f"ladder-{number}": Plan(
            f"ladder-{number}",
            f"The ladder from bigram to GPT: {rung}.",
            _LADDER,
            target=Target("validation_loss", 1.7507, _GE) if number == len(RUNGS) - 1 else None,
            related=tuple(name for name in _RUNGS if name != f"ladder-{number}"),
        )
        for number, rung in enumerate(RUNGS)
    },
    "bpe": Plan(
        "bpe",
        "GPT-2's kind of decoder over tokens longer than a character, learned from the text.",
        Recipe(steps=3_000, batch_size=16, learning_rate=1e-3),
        tokenizer="bpe",
    ),
    "reversal": Plan(
        "reversal",
        "The second half mirrors the first: the first half is random, and the second follows from "
        "it.",
        _REVERSAL,
        data="reversal",
        target=Target("validation_loss", 2.149, _CHANG, exact=True),
        related=("reversal-no-positions",),
    ),
    "reversal-no-positions": Plan(
        "reversal-no-positions",
        # Measured: at step 1,024 the last place is right in 96 % of cases, the second of the
        # mirrored half in 43 %, where the symbols still to come have 51 % of the probability and
        # the right one 27 %. The 9,000 steps more were trained in two runs that began with the
        # shipped model, at learning rates of 0.002 and 0.001.
        "The same without positions: it knows the order only from the causal mask. It first "
        "learns which symbols are still to "
        "come, then their order, from the end: after 6,000 steps it is 0.009 nats above the "
        "floor, after 9,000 more 0.001.",
        _REVERSAL,
        data="reversal",
        target=Target("validation_loss", 2.149, _CHANG, exact=True),
        related=("reversal",),
    ),
    "sums": Plan(
        "addition",
        "Sums of three-digit numbers, learned while you watch: at first the answers are wrong, "
        "then they become right.",
        replace(_TASK, steps=600, evaluations=20),
        data="addition",
        related=("addition",),
    ),
    "addition": Plan(
        "addition",
        "The same sums, trained five times as long, until no mistake is left; the answer begins "
        "with its last digit.",
        _TASK,
        data="addition",
        related=("sums",),
    ),
    "addition-sparse": Plan(
        "addition",
        "The same sums with one weight in twenty: of each matrix 95 in 100 become 0, and it still "
        "makes no mistake.",
        replace(_TASK, steps=5_000, final_rate=0.02, evaluations=12, keep_weights=0.05),
        data="addition",
        related=("addition",),
    ),
    "copy": Plan(
        "copy", "Every token repeats the token a fixed distance before it.", _TASK, data="copy"
    ),
    "induction": Plan(
        "induction",
        "Random blocks that repeat: two layers of attention find where the token stood before, "
        "and which token followed it.",
        replace(_TASK, steps=4_000, optimiser="adamw", learning_rate=2e-3),
        data="induction",
    ),
    "modular": Plan(
        "modular",
        "Sums on a clock, a third of them learned: first by heart, and much later, in a few "
        "hundred steps, by a rule (grokking).",
        replace(
            _TASK,
            steps=5_000,
            batch_size=512,
            optimiser="adamw",
            learning_rate=3e-3,
            beta2=0.98,
            weight_decay=1.0,
            evaluations=80,
            snapshots=2,
            precision="float32",
            compile="no",
        ),
        data="modular",
    ),
    "sentences": Plan(
        "sentences",
        "Little English sentences with words that can be known: who gets the book, is or are, "
        "which bracket closes, what colour.",
        _SENTENCES,
        data="sentences",
    ),
    "sentences-sparse": Plan(
        "sentences",
        "The same sentences with few weights: of each matrix 85 in 100 become 0, so that what is "
        "left can be followed from weight to weight.",
        replace(
            _SENTENCES,
            steps=2_400,
            batch_size=32,
            final_rate=0.02,
            evaluations=12,
            keep_weights=0.15,
        ),
        data="sentences",
        related=("sentences",),
        changes=_FEW_WEIGHTS,
    ),
    "quotes": Plan(
        "quotes",
        "A model that one can read: of 100 weights it has three, and with them it closes every "
        "quotation with the mark that belongs to the one that opened it.",
        replace(_SENTENCES, steps=1_000, batch_size=32, keep_weights=0.03),
        data="quotes",
    ),
    "jobs": Plan(
        "jobs",
        "What did my data do? Sentences with a dial for how many nurses are “she”: train two "
        "models on two shares, and ask both.",
        _JOBS,
        data="jobs",
    ),
    "pretrain": Plan(
        "bpe",
        "Python's language reference, character by character: a large text of another kind, for "
        "pretraining.",
        Recipe(steps=4_000, batch_size=16, learning_rate=3e-3),
        data="python-reference",
        related=("finetune", "from-scratch"),
        changes=_SMALL,
    ),
    "finetune": Plan(
        "bpe",
        "Shakespeare in a few steps, after pretraining on Python's reference: does the "
        "pretraining help?",
        _FEW,
        related=("from-scratch", "pretrain", "finetune-lora"),
        begin="pretrain",
    ),
    "finetune-lora": Plan(
        "bpe",
        "The same text in as many steps after the same pretraining, by LoRA: all weights stay, "
        "and factors of rank 4 are trained "
        "beside its matrices. How near to finetune does so small a change come?",
        _LORA,
        related=("finetune", "pretrain"),
        begin="pretrain",
    ),
    "from-scratch": Plan(
        "bpe",
        "Shakespeare in the same number of steps, without pretraining: the comparison for "
        "finetune.",
        _FEW,
        related=("finetune", "pretrain"),
        changes=_SMALL,
    ),
    "classifier": Plan(
        "classifier",
        "An encoder that classifies opinions: every word reads all the others, and adds its share "
        "to the decision.",
        _LABELS,
        data="opinions",
        tokenizer="words",
        related=("classifier-no-dropout",),
        changes=_MEAN,
    ),
    "classifier-no-dropout": Plan(
        "classifier",
        "The same without dropout: it is less good on texts that it was not trained on.",
        _LABELS,
        data="opinions",
        tokenizer="words",
        related=("classifier",),
        changes=(*_MEAN, *_NO_DROPOUT),
    ),
    "stars": Plan(
        "classifier",
        "Texts of your own, such as reviews with one to five stars: how often is it right, and "
        "how many stars is it off?",
        _OWN_TEXTS,
        data="stars",
        tokenizer="words",
        changes=_COUNTS_WORDS,
    ),
    "seq2seq": Plan(
        "seq2seq",
        "Dates as people write them, answered in digits: see which letters each digit comes from.",
        _PAIRS,
        data="dates",
        changes=_NO_DROPOUT,
    ),
    "numbers": Plan(
        "seq2seq",
        "Numbers in words, answered in digits: a place that the words leave out becomes a zero.",
        _PAIRS,
        data="numbers",
        related=("seq2seq", "mirror"),
        changes=_NO_DROPOUT,
    ),
    "mirror": Plan(
        "seq2seq",
        "A text written backwards: the attention moves from the last letter of the source to the "
        "first.",
        _PAIRS,
        data="mirror",
        related=("seq2seq", "numbers"),
        changes=_NO_DROPOUT,
    ),
    "bigram": Plan(
        "bigram",
        "The first model of the ladder, with a context of 8 tokens.",
        replace(_LADDER, batch_size=32),
    ),
    "transformerslite-generator": Plan(
        "transformerslite-generator",
        "The generator, as large as in its author's package.",
        _GENERATOR,
    ),
    "gpt2": Plan(
        "gpt2",
        "GPT-2 small: training it takes a laptop weeks.",
        Recipe(steps=100_000, batch_size=4, learning_rate=6e-4, snapshots=0),
        tokenizer="bpe",
    ),
}


@dataclass(frozen=True)
class ExperimentGroup:
    """Experiments that belong together."""

    title: str  #: the thing they have in common, in a few words
    plans: tuple[str, ...]  #: their names, in the order in which they are read
    #: a hint for the comparison of their losses; empty if the losses are of different data
    notice: str = ""
    folded: tuple[str, ...] = ()  #: those of them that lists of models have under one entry


# Every plan is in one group.
GROUPS = (
    ExperimentGroup(
        "Shakespeare",
        ("shakespeare", "llama-tiny", "neox-tiny"),
        # Measured: benchmarks/families.md.
        "Three families of models with as many weights each, trained for as long. The two that do "
        "not normalise queries and keys "
        "learn more slowly at first: do they catch up?",
    ),
    ExperimentGroup("Tokens of several characters", ("bpe", "gpt2")),
    ExperimentGroup(
        "With and without a mask",
        ("generator", "generator-unmasked", "transformerslite-generator"),
        "Without its mask it reads the answer: the loss falls far lower, but the text does not "
        "get better.",
    ),
    ExperimentGroup(
        "The ladder",
        (*_RUNGS, "bigram"),
        "Each rung has one part that the rung before it lacks: which part lowers the loss most?",
        folded=_RUNGS[1:-1],
    ),
    ExperimentGroup(
        "Positions",
        ("reversal", "reversal-no-positions"),
        "Both can reach the floor. Without positions only the causal mask tells the order: it "
        "takes longer.",
    ),
    ExperimentGroup(
        "Tasks with known answers",
        (
            "sums",
            "addition",
            "addition-sparse",
            "copy",
            "induction",
            "modular",
            "sentences",
            "sentences-sparse",
            "quotes",
        ),
    ),
    ExperimentGroup("What did my data do?", ("jobs",)),
    ExperimentGroup(
        "Pretraining",
        ("pretrain", "from-scratch", "finetune", "finetune-lora"),
        "Where does the one that read Python's reference first begin, and does it stay ahead?",
    ),
    ExperimentGroup(
        "Classifiers",
        ("classifier", "classifier-no-dropout"),
        "Dropout makes learning slower. Which of the two has the lower loss at its best, and "
        "where does it rise again?",
    ),
    ExperimentGroup("Texts of your own", ("stars",)),
    ExperimentGroup("Encoder–decoders", ("seq2seq", "numbers", "mirror")),
)
