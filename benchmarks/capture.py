"""`python -m benchmarks.capture`: what it costs to keep every intermediate, at GPT-2 small's size.

Everything tapped (`run` with all names) against the same forward pass with nothing kept, and against transformers
returning attentions and hidden states. The pages keep only what they show, and unembed only the positions they show:
those runs stand between.
"""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.interleave import interleave, report
from gptviz.interp.trace import run
from gptviz.model import PRESETS, build

SAME = ("embed", "blocks.*.resid_post", "blocks.*.attention.pattern")  # what transformers returns


def main() -> None:
    """Compare at 64, 256 and 1,024 tokens."""
    ours = build(PRESETS["gpt2"], seed=0).eval()
    theirs = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).eval()
    for tokens in (64, 256, 1_024):
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
            "gptviz, the same, logits of the last token alone": lambda ids=ids: run(ours, ids, SAME, logits_at=slice(-1, None)),
            "gptviz, nothing kept": plain,
            "transformers, attentions and hidden states": peer,
        }
        report(f"GPT-2 small's size, {tokens} tokens", interleave(rivals, rounds=5), "gptviz, everything kept")


if __name__ == "__main__":
    main()
