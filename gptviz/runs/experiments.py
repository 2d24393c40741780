"""Plans: for each preset, what it is trained on and how unless asked otherwise, and the number it should come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gptviz.data.registry import source_named
from gptviz.data.source import Source
from gptviz.model import PRESETS, Config, changed
from gptviz.model.presets import RUNGS
from gptviz.text import Tokenizer
from gptviz.train.recipe import Recipe

from . import checkpoints
from .run import RunSpec, prepare

TokenizerKind = Literal["characters", "bpe", "words"]


@dataclass(frozen=True)
class Target:
    """A number somebody published for this experiment.

    Attributes:
        quantity: "validation_loss" (nats per token), "perplexity" (its exponential) or "parameters".
        value: the number.
        by: who published it.
        exact: whether it is to be met; else what is better is as good.
    """

    quantity: Literal["validation_loss", "perplexity", "parameters"]
    value: float
    by: str
    exact: bool = False

    @property
    def quantity_name(self) -> str:
        """What the number is, in a word: "loss", "perplexity" or "parameters"."""
        return self.quantity.removeprefix("validation_")

    def __str__(self) -> str:
        return f"{self.quantity_name} {self.value:,g}"


@dataclass(frozen=True)
class Plan:
    """An experiment: an architecture, data and a recipe.

    Attributes:
        preset: the architecture.
        sentence: what it is and what to notice.
        recipe: how it is trained.
        data: a task or a corpus by name; "tiny-shakespeare" may be replaced by any text.
        tokenizer: how a text becomes tokens; a task has a tokenizer of its own.
        fraction: the share of a text that is trained on.
        target: a published number.
        beside: plans whose loss curves belong beside this one's.
        begin: the model it begins with, for finetuning: the one that the plan of this name makes.
        changes: fields of the architecture that differ from the preset's.
    """

    preset: str
    sentence: str
    recipe: Recipe
    data: str = "tiny-shakespeare"
    tokenizer: TokenizerKind = "characters"
    fraction: float = 0.9
    target: Target | None = None
    beside: tuple[str, ...] = ()
    begin: str | None = None
    changes: tuple[tuple[str, object], ...] = ()

    @property
    def name(self) -> str:
        """Its name in `PLANS`; for a plan that is not there, the name of its preset."""
        return next((name for name, plan in PLANS.items() if plan == self), self.preset)

    @property
    def config(self) -> Config:
        """The architecture, before a tokenizer fixes the size of its vocabulary."""
        return changed(PRESETS[self.preset], **dict(self.changes))

    def source(self) -> Source:
        """The data it is meant for."""
        return source_named(self.data, self.fraction)

    def learn_tokenizer(self, source: Source) -> Tokenizer:
        """The tokenizer of a task, or one learned on a text."""
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
        """Write down a run called `name` of this plan, for `training.train`, and return its folder.

        Args:
            source: other data than the plan's.
            recipe: another recipe.
            changes: fields of the architecture to change.
            tokenizer: one to use as it is, instead of learning one.
            begin: the model to begin with, instead of fresh weights; its architecture and tokenizer are kept.
            about: more for the card: the command, and as "preset" the experiment, where that is no plan.
            store: the type its weights are stored in.
            options: those of `run.prepare`.

        Raises:
            ValueError: these do not go together; the message says what to change. `run.prepare` raises more.
        """
        source = self.source() if source is None else source
        recipe = self.recipe if recipe is None else recipe
        begin, initial = begin or self.begin, None
        if begin is not None:
            if changes or tokenizer:
                raise ValueError(f"a run that begins with the model {begin} has its architecture and tokens: change neither")
            opened = checkpoints.load(checkpoints.find(begin))
            initial, tokenizer, config = opened.model, opened.tokenizer, opened.model.config
        else:
            tokenizer = self.learn_tokenizer(source) if tokenizer is None else tokenizer
            config = changed(source.fitted(self.config, tokenizer), **(changes or {}))
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
            store=store,
        )
        return prepare(spec, **options)


_GE = "J. Ge, “Understanding Transformer Architecture by Building GPT” (2023)"
_SINAI = "L. Sinai, “Generative transformer from first principles in Julia” (2024)"
_CHANG = "H. Chang, “Building a Transformer From Scratch” (2024)"
_NANOGPT = "A. Karpathy, nanoGPT (2022), 10.7 million parameters on a data-centre GPU"

_LADDER = Recipe(steps=10_000, batch_size=16, learning_rate=1e-3, weight_decay=0.01, beta2=0.999)
_RUNGS = tuple(f"ladder-{number}" for number in range(len(RUNGS)))
# Ten passes over the text, as in the seed; Muon and a line to 0 come further than its Adam at 0.01, and so small a
# model cannot learn by heart: dropout only slows it.
_GENERATOR = Recipe(
    steps=5_000, batch_size=32, optimiser="muon", learning_rate=1e-2, schedule="linear", final_rate=0.0, weight_decay=0.01
)
_NO_DROPOUT = (("dropout", 0.0),)
_SMALL = (("d_model", 128),)
_FEW = Recipe(steps=500, batch_size=16, learning_rate=1e-3)
_TASK = Recipe(steps=3_000, batch_size=64, optimiser="muon", learning_rate=4e-3, evaluations=30)
_REVERSAL = replace(_TASK, steps=6_000)
# Answers follow from sources that come anew each time: nothing is learned by heart, and dropout would only slow it down.
# AdamW answers 99 % of the dates after 1,500 steps; Muon at 0.01 has not begun to read the source by then.
_PAIRS = Recipe(
    steps=4_000, batch_size=64, learning_rate=5e-3, beta2=0.98, precision="float32", compile="no", evaluations=20, snapshots=1
)
# Ten passes over ten thousand reviews. So strong a decay acts most on words that are rarely read: without it the model learns
# them by heart, and is as often right but far too sure.
_LABELS = Recipe(steps=1_500, batch_size=64, learning_rate=1e-3, weight_decay=5.0)
_MEAN = (("head", "mean"),)

PLANS: dict[str, Plan] = {
    "shakespeare": Plan(
        "shakespeare",
        "The best character model that half an hour of a laptop makes.",
        Recipe(minutes=28, batch_size=16, optimiser="muon", learning_rate=5e-3, schedule="linear", final_rate=0.0),
        target=Target("validation_loss", 1.4697, _NANOGPT),
    ),
    "generator": Plan(
        "generator",
        "A small post-norm decoder: watch its positions and its map of characters take shape.",
        _GENERATOR,
        fraction=0.95,
        target=Target("perplexity", 6.3, _SINAI),
        beside=("generator-unmasked",),
        changes=_NO_DROPOUT,
    ),
    "generator-unmasked": Plan(
        "generator",
        "The same with the mask off: it reads the answers. The loss falls far below, the text does not get better.",
        _GENERATOR,
        fraction=0.95,
        beside=("generator",),
        changes=(*_NO_DROPOUT, ("mask", "full")),
    ),
    **{
        f"ladder-{number}": Plan(
            f"ladder-{number}",
            f"The ladder from bigram to GPT: {rung}.",
            _LADDER,
            target=Target("validation_loss", 1.7507, _GE) if number == len(RUNGS) - 1 else None,
            beside=tuple(name for name in _RUNGS if name != f"ladder-{number}"),
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
        "The second half mirrors the first: nobody can guess the first half, anybody can know the second.",
        _REVERSAL,
        data="reversal",
        target=Target("validation_loss", 2.149, _CHANG, exact=True),
        beside=("reversal-no-positions",),
    ),
    "reversal-no-positions": Plan(
        "reversal-no-positions",
        "The same without positions: the causal mask alone tells the order, and it learns more slowly.",
        _REVERSAL,
        data="reversal",
        target=Target("validation_loss", 2.149, _CHANG, exact=True),
        beside=("reversal",),
    ),
    "addition": Plan("addition", "Sums of three digits, answered from the last digit on.", _TASK, data="addition"),
    "copy": Plan("copy", "Every token repeats the one a fixed distance before it.", _TASK, data="copy"),
    "induction": Plan(
        "induction",
        "Random blocks that repeat: two blocks of attention find where the token stood before, and what came after it.",
        replace(_TASK, steps=4_000, optimiser="adamw", learning_rate=2e-3),
        data="induction",
    ),
    "pretrain": Plan(
        "bpe",
        "Python's reference first, a large text of another kind, character by character.",
        Recipe(steps=2_000, batch_size=16, learning_rate=3e-3),
        data="python-reference",
        beside=("finetune", "from-scratch"),
        changes=_SMALL,
    ),
    "finetune": Plan(
        "bpe",
        "Shakespeare after Python's reference, in few steps: what has it left behind?",
        _FEW,
        beside=("from-scratch", "pretrain"),
        begin="pretrain",
    ),
    "from-scratch": Plan(
        "bpe",
        "Shakespeare alone, in as few steps: what was the reference worth?",
        _FEW,
        beside=("finetune", "pretrain"),
        changes=_SMALL,
    ),
    "classifier": Plan(
        "classifier",
        "An encoder that tells what an opinion is: every word reads all others, and adds its share to the decision.",
        _LABELS,
        data="opinions",
        tokenizer="words",
        beside=("classifier-no-dropout",),
        changes=_MEAN,
    ),
    "classifier-no-dropout": Plan(
        "classifier",
        "The same without dropout: what it learns from its texts holds less for those held out.",
        _LABELS,
        data="opinions",
        tokenizer="words",
        beside=("classifier",),
        changes=(*_MEAN, *_NO_DROPOUT),
    ),
    "seq2seq": Plan(
        "seq2seq",
        "Dates as people write them, answered in digits: see which letters each digit is read from.",
        _PAIRS,
        data="dates",
        changes=_NO_DROPOUT,
    ),
    "numbers": Plan(
        "seq2seq",
        "Numbers in words, answered in digits: what is not said becomes a zero.",
        _PAIRS,
        data="numbers",
        beside=("seq2seq", "mirror"),
        changes=_NO_DROPOUT,
    ),
    "mirror": Plan(
        "seq2seq",
        "A text backwards: the answer reads its source from the last letter to the first.",
        _PAIRS,
        data="mirror",
        beside=("seq2seq", "numbers"),
        changes=_NO_DROPOUT,
    ),
    "bigram": Plan("bigram", "The first rung with the seed's short context.", replace(_LADDER, batch_size=32)),
    "transformerslite-generator": Plan(
        "transformerslite-generator", "The generator at the size of its author's package.", _GENERATOR
    ),
    "gpt2": Plan(
        "gpt2",
        "GPT-2 small: a laptop needs weeks for it.",
        Recipe(steps=100_000, batch_size=4, learning_rate=6e-4, snapshots=0),
        tokenizer="bpe",
    ),
}


def groups() -> list[tuple[str, ...]]:
    """The names of the plans, grouped by whose curves belong beside each other; the largest group, the ladder, comes first."""
    groups: list[tuple[str, ...]] = []
    for name, plan in PLANS.items():
        group = tuple(other for other in PLANS if other == name or other in plan.beside)
        if group not in groups:
            groups.append(group)
    return sorted(groups, key=lambda group: -len(group))
