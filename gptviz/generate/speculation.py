"""Speculative decoding: a fast drafter proposes tokens, and one pass of the large model judges them
all.

The text is distributed as the large model's own: a drafted token x is accepted with probability
min(1, p(x) ÷ q(x)), where p is the large model's distribution and q the drafter's; where it is
refused, a token is drawn from max(0, p − q), normalised, in its place (Leviathan et al. 2023, “Fast
inference from transformers via speculative decoding”; Chen et al. 2023, “Accelerating large
language model decoding with speculative sampling”). The drafter decides only how many tokens a pass
gives.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from gptviz.model import Transformer
from gptviz.settings.fields import check_number, whole_number

from .generation import Generation
from .sampling import Sampling, check_finite, draw, ledger, uniform

# tokens that one round drafts by default, and may draft
DRAFTED = 4
MOST_DRAFTED = 16
# Of the random numbers of a position: the first draws its token, as without a drafter; the others
# accept it, or replace it.
DRAWS, ACCEPTS, REPLACES = range(3)


class Proposal(NamedTuple):
    """A token that a drafter proposes."""

    token: int  #: its id
    #: [vocab_size], the probabilities that it was drawn from, float64 on the CPU
    distribution: Tensor


class Drafter(Protocol):
    """What proposes tokens."""

    def propose(self, ids: Sequence[int], most: int) -> list[Proposal]:
        """At most `most` tokens that may follow `ids`, each with the distribution that it was drawn
        from; or none.
        """


class ModelDrafter:
    """A model that drafts, a decoder in evaluation mode: it draws its tokens with the settings of
    the large model, and never those of `never`. `vocab_size` is that of the large model, if it has
    another number of tokens that are never drawn at its end.
    """

    def __init__(
        self,
        model: Transformer,
        sampling: Sampling | None = None,
        never: Sequence[int] = (),
        vocab_size: int | None = None,
    ) -> None:
        self.model = model
        self.sampling = sampling or Sampling()
        self.never = never
        self.vocab_size = vocab_size or model.config.vocab_size
        self._grown: Generation | None = None

    def propose(self, ids: Sequence[int], most: int) -> list[Proposal]:
        grown = self._generation_after(list(ids))
        proposals = []
        for _ in range(most):
            position = grown.ids.shape[1]
            check_finite(grown.logits, position)
            distribution = ledger(grown.logits, self.sampling, self.never).after  # [1, vocab_size]
            token = draw(distribution, uniform(self.sampling.seed, position))
            grown.take(token)
            # below 0, it cuts
            of_large = pad(distribution[0], (0, self.vocab_size - distribution.shape[1]))
            proposals.append(Proposal(int(token), of_large))
        return proposals

    def _generation_after(self, ids: list[int]) -> Generation:
        """The model's generation at the end of `ids`; what it has computed for their beginning is
        kept.
        """
        grown = self._grown
        if (
            grown is None
            or ids[: grown.prompt_length]
            != (before := grown.ids[0].tolist())[: grown.prompt_length]
        ):
            grown = self._grown = Generation(
                self.model, torch.tensor(ids), self.sampling, never=self.never
            )
        else:
            pairs = zip(ids, before, strict=False)
            same = next(
                (index for index, (now, then) in enumerate(pairs) if now != then),
                min(len(ids), len(before)),
            )
            grown.replace(same, torch.tensor([ids[same:]], dtype=torch.long))
        return grown


class LookupDrafter:
    """The text's own continuation: what followed the latest earlier place that has the same `n`
    last tokens; where there is no such place, one fewer, down to 1. `vocab_size` is that of the
    large model. A ValueError if `n` is below 1.

    It costs nothing, and its distribution has all its mass on the token that it copies (Saxena
    2023, “Prompt lookup decoding”).
    """

    def __init__(self, vocab_size: int, n: int = 3) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; at least 1 of the last tokens must be looked for")
        self.vocab_size = vocab_size
        self.n = n

    def propose(self, ids: Sequence[int], most: int) -> list[Proposal]:
        """The `most` tokens after that place, or none if the text has no such place; a copy may run
        on into itself.
        """
        text = list(ids)
        start = self._place(text)
        if start is None:
            return []
        for index in range(most):
            text.append(text[start + index])
        copied = torch.tensor(text[len(ids) :], dtype=torch.long)
        return list(map(Proposal, copied.tolist(), one_hot(copied, self.vocab_size).double()))

    def _place(self, text: list[int]) -> int | None:
        """The index after the latest earlier occurrence of the last tokens."""
        for n in range(min(self.n, len(text) - 1), 0, -1):
            for end in range(len(text) - 1, n - 1, -1):
                if text[end - n : end] == text[-n:]:
                    return end
        return None


@dataclass(frozen=True)
class Drafted:
    """A drafted token and what became of it."""

    position: int  #: how many tokens came before it
    token: int  #: its id
    q: float  #: its probability under the drafter, after temperature, top-k and top-p
    #: its probability under the large model, after the same settings; None if it was not judged
    p: float | None = None
    #: the random number in [0, 1) that decided: the token is accepted if it is below p ÷ q; None if
    #: it was not judged
    number: float | None = None
    #: whether the token is in the text; None if a token before it was refused, so that it was not
    #: judged
    accepted: bool | None = None


@dataclass(frozen=True)
class Round:
    """What one pass of the large model gives."""

    position: int  #: how many tokens came before it
    drafted: tuple[Drafted, ...]  #: the drafted tokens, in their order
    #: the token after the accepted ones: drawn in place of the refused one, or, where all were
    #: accepted, one more. None if the last accepted token ends the text.
    token: int | None
    #: the probability that `token` was drawn with: under max(0, p − q), normalised, in place of a
    #: refused token, else under the large model
    probability: float | None
    number: float | None  #: the random number in [0, 1) that it was drawn with

    @property
    def accepted(self) -> int:
        """How many drafted tokens were accepted."""
        return sum(draft.accepted is True for draft in self.drafted)

    @property
    def judged(self) -> int:
        """How many drafted tokens were accepted or refused."""
        return sum(draft.accepted is not None for draft in self.drafted)

    @property
    def tokens(self) -> list[int]:
        """The tokens that it adds to the text."""
        taken = [draft.token for draft in self.drafted if draft.accepted]
        if self.token is None:
            return taken
        return [*taken, self.token]


@dataclass(frozen=True)
class Speculated:
    """A text that was written with a drafter."""

    rounds: tuple[Round, ...]  #: one per pass of the large model

    @property
    def tokens(self) -> list[int]:
        """The tokens, without the prompt."""
        return [token for part in self.rounds for token in part.tokens]

    @property
    def acceptance_rate(self) -> float | None:
        """Of the drafted tokens that were judged, the share that was accepted, from 0 to 1; None if
        none was.
        """
        judged = sum(part.judged for part in self.rounds)
        if judged:
            return sum(part.accepted for part in self.rounds) / judged
        return None

    @property
    def tokens_per_pass(self) -> float | None:
        """The tokens of the text per pass of the large model, 1 without a drafter; None if there
        was no pass.
        """
        if self.rounds:
            return len(self.tokens) / len(self.rounds)
        return None

    def sentence(self, drafter: str, large: str) -> str:
        """The two rates in words, with the names of the two models; the drafter "prompt" is the
        text's own continuation.
        """
        if not self.rounds:
            return "no token was written"
        if drafter == "prompt":
            who = "the text's own continuation"
        else:
            who = drafter
        passes = f"{len(self.rounds):,} pass{'' if len(self.rounds) == 1 else 'es'} of {large}"
        tokens = f"{len(self.tokens):,} token{'' if len(self.tokens) == 1 else 's'}"
        gave = f"{passes} gave {tokens}, {self.tokens_per_pass:.2f} per pass"
        if self.acceptance_rate is None:
            return f"{who} drafted nothing; {gave}"
        accepted, judged = (
            sum(getattr(part, name) for part in self.rounds) for name in ("accepted", "judged")
        )
        return (
            f"{accepted:,} of {judged:,} judged drafts of {who} were accepted "
            f"({self.acceptance_rate:.0%}); {gave}"
        )


class Speculation:
    """A text that grows by rounds: the drafter proposes, one pass of the large model judges.

    The seed decides everything: the numbers of a position are a hash of it and the position, the
    first of them that of generation without a drafter. So a model that drafts for itself writes the
    text that it writes by itself. At temperature 0 the text is the large model's greedy text for
    any drafter (unless its two likeliest tokens differ by no more than the rounding of a pass over
    several tokens).

    Past the context the window of every token begins one further on: then one pass over as many
    windows, side by side, judges the tokens. A round does not cross the end of the context.

    Args:
        model: the large model, a causal decoder in evaluation mode.
        ids: [T] token ids to start from, at least one.
        sampling: how tokens are drawn; a `ModelDrafter` should have the same.
        most_drafted: how many tokens a round drafts, from 1 to `MOST_DRAFTED`.
        never: tokens that are never drawn.
        ends: tokens that end a text: nothing is drafted or drawn after one.

    Raises:
        ValueError: no token to start from, an impossible number of drafted tokens, or a model that
            looks ahead (a full mask), so that one pass cannot judge several tokens.
    """

    def __init__(
        self,
        model: Transformer,
        drafter: Drafter,
        ids: Tensor,
        sampling: Sampling | None = None,
        *,
        most_drafted: int = DRAFTED,
        never: Sequence[int] = (),
        ends: Container[int] = (),
    ) -> None:
        if ids.numel() == 0:
            raise ValueError(
                "there is no token to start from: give a prompt of at least one character"
            )
        check_number(whole_number(1, MOST_DRAFTED), "the number of drafted tokens", most_drafted)
        if model.config.mask != "causal":
            raise ValueError(
                "the model looks ahead (a full mask), so one pass cannot judge several tokens: "
                "use a causal model"
            )
        self.model = model
        self.drafter = drafter
        self.sampling = sampling or Sampling()
        self.most_drafted = most_drafted
        self.never = never
        self.ends = ends
        self.ids: list[int] = ids.tolist()  #: the tokens so far
        self._cache = model.new_cache(room=len(self.ids) + most_drafted + 1)

    def rounds(self, tokens: int) -> Iterator[Round]:
        """Rounds until `tokens` tokens more are written, or one that ends the text."""
        whole = len(self.ids) + tokens
        while len(self.ids) < whole:
            result = self.round(whole - len(self.ids))
            yield result
            if result.tokens[-1] in self.ends:
                return

    def round(self, most: int | None = None) -> Round:
        """The next round, which writes at most `most` tokens (at least 1)."""
        before = len(self.ids)
        room = self.model.config.context_length - before
        drafts = min(
            self.most_drafted,
            self.most_drafted if most is None else most - 1,
            room if room > 0 else self.most_drafted,
        )
        if drafts:
            proposals = self.drafter.propose(self.ids, drafts)
        else:
            proposals = []
        ended = (place for place, (token, _) in enumerate(proposals, 1) if token in self.ends)
        proposals = proposals[: next(ended, len(proposals))]
        large = self.distributions(
            [*self.ids, *(proposal.token for proposal in proposals)], len(proposals) + 1
        )
        result = judge_proposals(proposals, large, self.sampling.seed, before, self.ends)
        self.ids += result.tokens
        return result

    @torch.inference_mode()
    def distributions(self, ids: list[int], count: int) -> Tensor:
        """The large model's distributions [count, vocab_size] after each of the last `count` of
        `ids`, by one pass.
        """
        all_ids = torch.tensor(ids, device=self.model.embed.weight.device)
        context = self.model.config.context_length
        if len(ids) <= context:
            # The token before those to be judged is always computed: its logits judge the first of
            # them.
            self._cache.truncate(len(ids) - count)
            logits = self.model(
                all_ids[None, self._cache.length :],
                cache=self._cache,
                logits_at=slice(-count, None),
            )[0]
        else:
            windows = all_ids.unfold(0, context, 1)[-count:]  # [count, context]
            logits = self.model(windows, logits_at=slice(-1, None))[:, -1]
        check_finite(logits, len(ids))
        return ledger(logits, self.sampling, self.never).after


def judge_proposals(
    proposals: Sequence[Proposal],
    large: Tensor,
    seed: int,
    position: int,
    ends: Container[int] = (),
) -> Round:
    """The round that the proposals give.

    Args:
        proposals: k drafted tokens.
        large: [k + 1, vocab_size], the large model's distributions: of each drafted token, and of
            one more.
        seed: decides the random numbers, with the position.
        position: how many tokens came before the first drafted one.
        ends: tokens after which no more is drawn.
    """
    drafted: list[Drafted] = []
    left = large[-1]  # what the token after the accepted ones is drawn from
    which = DRAWS
    for index, (token, distribution) in enumerate(proposals):
        p = float(large[index, token])
        q = float(distribution[token])
        number = float(uniform(seed, position + index, ACCEPTS + 1)[ACCEPTS])
        drafted.append(Drafted(position + index, token, q, p, number, accepted=number * q < p))
        if not drafted[-1].accepted:
            above = (large[index] - distribution).clamp(min=0)
            # Nothing is left only where both are the same but for rounding.
            left = above / above.sum() if above.any() else large[index]
            which = REPLACES
            drafted += [
                Drafted(
                    position + after, proposal.token, float(proposal.distribution[proposal.token])
                )
                for after, proposal in enumerate(proposals[index + 1 :], index + 1)
            ]
            break
    if which == DRAWS and proposals and proposals[-1].token in ends:
        return Round(position, tuple(drafted), None, None, None)
    at = position + sum(draft.accepted is True for draft in drafted)
    number = float(uniform(seed, at, which + 1)[which])
    token = int(draw(left[None], torch.tensor([number], dtype=torch.float64)))
    return Round(position, tuple(drafted), token, float(left[token]), number)
