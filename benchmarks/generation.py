"""`python -m benchmarks.generation [NAME]`: generating at full context, one sequence, against two ways to do it.

The last tokens before the context is full are generated greedily by our cache, by computing the whole window again at
each step, and by transformers' GPT-2 of the same size with its own cache.
"""

from __future__ import annotations

import sys
from itertools import islice

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import gptviz
from benchmarks.interleave import interleave, report
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling

NEW = 64


def main(name: str) -> None:
    """Compare on the model called `name`."""
    model = gptviz.load(name, "cpu").model
    config = model.config
    peer = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab_size,
            n_positions=config.context_length,
            n_embd=config.d_model,
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_inner=config.mlp_size,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    prompt = torch.randint(config.vocab_size, (config.context_length - NEW,), generator=torch.Generator().manual_seed(0))

    def ours(use_cache: bool) -> torch.Tensor:
        grown = Generation(model, prompt, Sampling(temperature=0), use_cache=use_cache)
        for _ in islice(grown, NEW):
            pass
        return grown.ids

    @torch.inference_mode()
    def theirs_bare() -> None:
        past, fresh = None, prompt[None]
        for _ in range(NEW):
            output = peer(fresh, past_key_values=past, use_cache=True)
            past, fresh = output.past_key_values, output.logits[:, -1:].argmax(-1)

    @torch.inference_mode()
    def theirs() -> None:
        peer.generate(
            prompt[None], max_new_tokens=NEW, do_sample=False, attention_mask=torch.ones_like(prompt[None]), pad_token_id=0
        )

    assert torch.equal(ours(True), ours(False))
    seconds = interleave(
        {
            "gptviz, cache": lambda: ours(True),
            "gptviz, the whole window again at each step": lambda: ours(False),
            "transformers, generate() with its cache": theirs,
            "transformers, a bare loop with its cache": theirs_bare,
        }
    )
    size = f"{config.n_layer} blocks, d_model {config.d_model}"
    report(f"{name} ({size}): {NEW} tokens up to a context of {config.context_length}", seconds, "gptviz, cache", NEW, "tokens/s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "shakespeare")
