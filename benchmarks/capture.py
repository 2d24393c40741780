"""`python -m benchmarks.capture [TOKENS …] [--rounds N]`: what it costs to keep every intermediate,
at GPT-2 small's size.

Everything tapped (`run` with all names) against the same forward pass with nothing kept, and
against transformers returning attentions and hidden states. The pages keep only what they show, and
unembed only the positions they show: those runs stand between. The weights are the same, and lie as
those of a model that was opened; the time is that of the processor, and the fastest of some turns
counts.
"""

from __future__ import annotations

import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.generation import opened
from benchmarks.interleave import interleave, report
from gptviz.interp.trace import run

SAME = ("embed", "blocks.*.resid_post", "blocks.*.attention.pattern")  # what transformers returns


def main() -> None:
    """Compare at the given lengths."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tokens", nargs="*", type=int, default=[64, 256, 1_024])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    theirs = GPT2LMHeadModel(
        GPT2Config(attn_implementation="eager", bos_token_id=None, eos_token_id=None)
    ).eval()
    ours = opened(theirs)
    for tokens in options.tokens:
        ids = torch.randint(50_257, (1, tokens), generator=torch.Generator().manual_seed(0))

        @torch.inference_mode()
        def plain(ids: torch.Tensor = ids) -> None:
            ours(ids)

        @torch.inference_mode()
        def peer(ids: torch.Tensor = ids) -> None:
            theirs(ids, output_attentions=True, output_hidden_states=True, use_cache=False)

        rivals = {
            "gptviz, everything kept": lambda ids=ids: run(ours, ids),
            "gptviz, patterns and residual stream kept": lambda ids=ids: run(ours, ids, SAME),
            "gptviz, the same, logits of the last token alone": lambda ids=ids: run(
                ours, ids, SAME, logits_at=slice(-1, None)
            ),
            "gptviz, nothing kept": plain,
            "transformers, attentions and hidden states": peer,
        }
        seconds = interleave(rivals, options.rounds, clock=time.process_time, of=min)
        report(f"GPT-2 small's size, {tokens} tokens", seconds, "gptviz, everything kept")


if __name__ == "__main__":
    main()
