"""The choices of the Heads page: the text that the heads read, the score that orders them, and a head."""

from __future__ import annotations

from dataclasses import dataclass

from gptviz.interp.units.head_scores import SCORES, AttentionPart
from gptviz.interp.units.unit import Unit, unit
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.shell.subject.bar import read_prompt
from gptviz.ui.views import attention, encoder_decoder, held_out
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.views.read import Read
from gptviz.ui.views.texts import OWN, PASSAGES, text_of
from gptviz.ui.widgets import addresses, controls

from . import READS

RANDOM, PROMPT, HELD_OUT = "Repeated random tokens", "The prompt", "Held-out data"
# The key in the address of the head that is shown.
CHOSEN = "unit"


@dataclass(frozen=True)
class HeadSetting:
    """Which heads are scored, and what they read.

    Attributes:
        key: the model.
        stack: as in `Read`.
        read: the text that they read, or None if it is none of the reader's.
        held_out: whether they read data that were held out of the model's training; else, without a text, they read repeated
            random tokens.
        text: the text that is read in place of the prompt; empty for any other.
    """

    key: ModelKey
    stack: str
    read: Read | None
    held_out: bool = False
    text: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks there are, and heads in each."""
        config = language_model(self.key).model.config
        return encoder_decoder.n_blocks(config, self.stack), config.n_head

    def unit(self, block: int, head: int) -> Unit:
        """A head of the stack."""
        part: AttentionPart = "cross_attention" if self.stack == attention.CROSS else "attention"
        return Unit(part, block, head, in_encoder=self._in_encoder)

    @property
    def _in_encoder(self) -> bool:
        return self.stack == encoder_decoder.ENCODER and language_model(self.key).model.encoder is not None


def setting(subject: Subject, stack: str, view: str) -> HeadSetting:
    """The control `over`: what the heads read, where the view shows what comes of it. An encoder–decoder reads the prompt and
    writes its own answer.
    """
    read = attention.stack_read(subject, stack)
    if subject.kind == "encoder-decoder" or subject.lm.repeats is None:
        return HeadSetting(subject.key, stack, read)
    about = (
        "Random tokens that are repeated once: what follows a token in the second half can only be known from the first half, so "
        "heads that look back cannot be mistaken for heads that know the language. Your own prompt. Or "
        f"{held_out.said(subject.key)}, where these are on this machine. For a model from elsewhere, passages of old books that "
        "come with gptviz, or a text of yours."
    )
    options = [RANDOM, PROMPT]
    options += [HELD_OUT] if _has_held_out(subject) else []
    options += [PASSAGES, OWN] if subject.is_imported else []
    # The skill that a model was trained for shows in texts that need it, not in random tokens.
    usual = HELD_OUT if known_contrasts(subject.lm) else RANDOM
    fits = len(options) <= 3  # side by side, in one line with the other choices
    over = controls.select("Heads read", options, key="over", default=usual, help=about, segmented=fits, disabled=view == READS)
    if over in (PASSAGES, OWN):
        other = read_prompt(subject.key, subject.lm, text_of(over, subject.prompt), subject.prompt, needs_prompt=False)
        return HeadSetting(subject.key, stack, attention.stack_read(other, stack), text=other.prompt)
    return HeadSetting(subject.key, stack, read if over == PROMPT else None, over == HELD_OUT)


def _has_held_out(subject: Subject) -> bool:
    return subject.kind == "decoder" and held_out.is_here(subject.key)


def score(names: tuple[str, ...], first: str) -> str:
    """The control `score`: what colours and orders the heads; `first` unless something else is chosen."""
    about = "Colours the cells, and orders the table. Each column of the table says how its score is defined."
    return controls.select("Score", names, key="score", default=first, help=about, format_func=lambda name: SCORES[name].title)


def chosen(setting: HeadSetting, first: tuple[int, int]) -> tuple[int, int]:
    """The block and the head that the address asks for; `first` where it asks for none of this stack."""
    config = language_model(setting.key).model.config
    found = controls.linked(CHOSEN, lambda asked: unit(asked, config), setting.unit(*first))
    if found.block is None or found.index is None or found != setting.unit(found.block, found.index):
        return first  # a head of another stack
    return found.block, found.index


def choose(setting: HeadSetting, block: int, head: int) -> None:
    """Put a head into the address."""
    addresses.write(CHOSEN, setting.unit(block, head).name)
