"""`python -m benchmarks.generation [NAME …] [--threads N]`: greedy text, one sequence at a time,
beside `transformers`.

NAME is `shakespeare`, `gpt2` or `smollm2`: the size of a model with random weights, which
`transformers` makes, saves and generates with, and which gptviz opens from that folder. Both are
float32 and have to write the same text. Prompt and text together fill 256 tokens. The actual model
`shakespeare`, whose architecture `transformers` lacks, is timed beside them.

The time is that of the processor and not of the clock on the wall, on one thread unless told
otherwise, and of every token the fastest of several turns counts: on a machine with other work both
say more about the programs. The first token takes the pass over the prompt, which is told apart.
Results: benchmarks/generation.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import gptviz
from benchmarks.interleave import report
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.model import Transformer

CONTEXT = 256
NO_ENDS: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def peer_of(name: str) -> Any:
    """A model of `transformers` with this size and random weights."""
    torch.manual_seed(0)
    if name == "smollm2":
        config = LlamaConfig(
            vocab_size=49_152,
            hidden_size=576,
            intermediate_size=1_536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            max_position_embeddings=2_048,
            tie_word_embeddings=True,
            **NO_ENDS,
        )
        return LlamaForCausalLM(config).eval()
    size = (
        {}
        if name == "gpt2"
        else {"vocab_size": 65, "n_positions": CONTEXT, "n_embd": 192, "n_layer": 6, "n_head": 6}
    )
    return GPT2LMHeadModel(GPT2Config(**size, **NO_ENDS)).eval()


def opened(peer: Any) -> Transformer:
    """The same model, as gptviz opens it."""
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        return gptviz.load(Path(folder), "cpu").model


class Marks:
    """The processor's time after each token; `transformers` takes it for a streamer of text."""

    def __init__(self) -> None:
        self.times = [time.process_time()]

    def put(self, tokens: torch.Tensor) -> None:
        """Some tokens were written; a streamer is given the prompt too."""
        if tokens.numel() == 1:
            self.times.append(time.process_time())

    def end(self) -> None:
        """Nothing more comes."""

    def seconds(self) -> list[float]:
        """The seconds that each token took."""
        return [after - before for before, after in pairwise(self.times)]


def compare(name: str, new: int, rounds: int) -> None:
    """Time `new` tokens of both."""
    peer = peer_of(name)
    prompt = torch.randint(65, (CONTEXT - new,), generator=torch.Generator().manual_seed(0))

    def ours(model: Transformer, marks: Marks) -> torch.Tensor:
        grown = Generation(model, prompt, Sampling(temperature=0))
        for step in islice(grown, new):
            marks.put(step.tokens)
        return grown.ids

    @torch.inference_mode()
    def theirs(marks: Marks) -> torch.Tensor:
        mask = torch.ones_like(prompt[None])
        result: torch.Tensor = peer.generate(
            prompt[None],
            max_new_tokens=new,
            do_sample=False,
            attention_mask=mask,
            pad_token_id=0,
            streamer=marks,
        )
        return result

    @torch.inference_mode()
    def theirs_bare(marks: Marks) -> None:
        past = None
        fresh = prompt[None]
        for _ in range(new):
            output = peer(fresh, past_key_values=past, use_cache=True, logits_to_keep=1)
            past = output.past_key_values
            fresh = output.logits[:, -1:].argmax(-1)
            marks.put(fresh)

    model = opened(peer)
    assert torch.equal(ours(model, Marks()), theirs(Marks()))
    rivals: dict[str, Callable[[Marks], object]] = {
        "gptviz": lambda marks: ours(model, marks),
        "transformers, generate()": theirs,
        "transformers, a bare loop": theirs_bare,
    }
    if name == "shakespeare":
        shipped = gptviz.load(name, "cpu").model
        rivals["gptviz, the model shakespeare itself"] = lambda marks: ours(shipped, marks)
    fastest = {rival: [float("inf")] * new for rival in rivals}
    for _ in range(rounds):
        for rival, run in rivals.items():
            marks = Marks()
            run(marks)
            fastest[rival] = list(map(min, fastest[rival], marks.seconds()))
    numbers = sum(parameter.numel() for parameter in model.parameters())
    size = f"{name}'s size ({numbers / 1e6:.1f} M parameters)"
    report(
        f"{size}: {new} tokens",
        {rival: sum(each) for rival, each in fastest.items()},
        "gptviz",
        new,
        "tokens/s",
    )
    report(
        f"{size}: the pass over {len(prompt)} tokens",
        {rival: each[0] for rival, each in fastest.items()},
        "gptviz",
    )
    after = {rival: sum(each[1:]) for rival, each in fastest.items()}
    report(f"{size}: the {new - 1} tokens after it", after, "gptviz", new - 1, "tokens/s")


def main() -> None:
    """Compare at the given sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["shakespeare", "gpt2", "smollm2"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        compare(name, options.new, options.rounds)


if __name__ == "__main__":
    main()
