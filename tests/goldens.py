"""What every page shows and every command prints, recorded, to be compared after a redesign.

`make goldens` records it where nothing is recorded, and else names all that differs. It is recorded
twice, and what differs then, such as a time that was measured, is compared no more.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

# A number differs if it does by this share, or by this much near 0: the sums of two processors do.
RELATIVE = 1e-4
ABSOLUTE = 1e-5
# Of a long array as many of its values are kept, and how many there are.
KEPT = 60
MADE_UP = re.compile("[0-9a-f]{24}")
# What differs from process to process: the number of what a view shows.
OF_PROCESS = ("generation",)
# What differed between two recordings of the same code.
DIFFERS = "differs from run to run"
# A model of each kind, one with snapshots and one with a task.
MODELS = ("sentences", "shakespeare", "induction", "classifier", "seq2seq")
PROMPTS = {
    "sentences": "When Mary and John went to the shop, John gave a book to",
    "shakespeare": "O Romeo, Romeo",
    "classifier": "a warm and funny film",
    "seq2seq": "may 1977",
}
# Each of them is asked of each of these models, as text and with --json: what one of them cannot
# answer is a refusal, which is recorded too.
ASKED = """
answers MODEL
answers MODEL --sentence PROMPT --word a --word b
attribute MODEL --prompt PROMPT
attribute MODEL --prompt PROMPT --position 1
attribute MODEL --prompt PROMPT --token a --against b
attribute MODEL --prompt PROMPT --token nosuch
circuit MODEL --prompt PROMPT
circuit MODEL --prompt PROMPT --share 0.5 --reference "a text"
circuit MODEL --prompt PROMPT --share 7
classify MODEL --text PROMPT
compare MODEL MODEL --prompt PROMPT --b-prompt "a b"
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp --what attention --block 0
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp --what attribution
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp --what embeddings
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp --what heads
compare MODEL MODEL --prompt PROMPT --b-without blocks.0.mlp --what lens
compare MODEL MODEL --prompt PROMPT --b-without blocks.9.mlp
compare MODEL MODEL --prompt PROMPT --what weights
context MODEL --prompt PROMPT
context MODEL --prompt PROMPT --how removed
costs MODEL
costs MODEL --batch 2 --context 8
describe MODEL
evaluate MODEL --without blocks.0.mlp
experts MODEL --prompt PROMPT
features MODEL --prompt PROMPT
features MODEL --prompt PROMPT --dictionary nosuch
generate MODEL --prompt PROMPT --max-new-tokens 12 --seed 3
generate MODEL --prompt PROMPT --max-new-tokens 12 --greedy
heads MODEL
heads MODEL --head blocks.0.attention.head.0 --tokens 500
heads MODEL --head blocks.9.attention.head.0
heads MODEL --prompt PROMPT --losses
history MODEL --measure heads.induction
history MODEL --measure list
history MODEL --measure nosuch
lens MODEL --prompt PROMPT
lens MODEL --prompt PROMPT --top 2 --blocks-only
lens MODEL --prompt PROMPT --kind nosuch
neurons MODEL --block 0 --tokens 500
neurons MODEL --block 0 --tokens 500 --by effect
neurons MODEL --block 0 --neuron 3 --tokens 500
neurons MODEL --block 99
patch MODEL --prompt PROMPT --corrupted PROMPT
patch MODEL --prompt "a b c" --corrupted "a c b"
patch MODEL --prompt "a b c" --corrupted "a c b" --what attention.z --right a --wrong b
patch MODEL --prompt "a b c" --corrupted "a c b" --preview
probe MODEL --label before-1
probe MODEL --label nosuch
quantise MODEL --as 4bit.g32 --prompt PROMPT
rows MODEL --most 4
scan MODEL --prompt PROMPT
stream MODEL --prompt PROMPT
stream MODEL --prompt PROMPT --position 1
stream MODEL --prompt PROMPT --position 99999
tokens MODEL --prompt PROMPT
"""


def record_page(case: str) -> Any:
    """All that a page shows at an address: `PAGE?KEY=VALUE&…`."""
    from urllib.parse import parse_qsl

    from gptviz.ui.menu import PAGES
    from tests.app.opening import in_sight, last_value, opened

    name, _, query = case.partition("?")
    at = opened(PAGES[name].path, **dict(parse_qsl(query)))
    at.session_state[f"{name} numbers"] = True
    at.run()
    shown = [element for node in in_sight(at) if (element := _element(node)) is not None]
    printed = [one.value for one in at.code if "gptviz." in str(one.value)]
    results = []
    for code in printed:
        try:
            results.append(_plain(last_value(code)))
        # lines that are no program that ends in a value, such as a command
        except Exception as error:
            results.append(type(error).__name__)
    address = {key: at.query_params[key] for key in at.query_params}
    return {"shown": shown, "code": printed, "results": results, "address": address}


def record_command(case: str) -> Any:
    """The status of a command, and what it prints."""
    from gptviz.__main__ import main

    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(shlex.split(case))
        except SystemExit as ended:
            status = ended.code
    text = out.getvalue()
    printed = json.loads(text) if status == 0 and "--json" in case else text.splitlines()
    return {"status": status, "out": printed, "err": err.getvalue().splitlines()}


def pages() -> Iterator[str]:
    """The addresses of all pages in all their states, with a model of each kind that they are
    about; and those of links that older versions wrote.
    """
    from urllib.parse import urlencode

    from gptviz.runs import checkpoints
    from gptviz.ui.menu import PAGES
    from tests.app.test_code_of_pages import STATES
    from tests.app.test_old_addresses import FIRST, MORE

    kinds = {name: checkpoints.read_config(checkpoints.find(name)).kind for name in MODELS}
    cases: dict[str, None] = {}
    for page in PAGES.values():
        own = [dict(state) for name, state in STATES if name == page.name]
        models = [name for name in MODELS if kinds[name] in page.kinds] if page.has_model else []
        for state in ({}, *map(dict, page.states), *own):
            state.pop("model", None)
            # what is the same for all decoders is looked at with one of them
            for model in (models if not state else models[:1] + models[3:]) or [""]:
                query = ({"model": model} if model else {}) | state
                cases[f"{page.name}?{urlencode(query)}"] = None
    return iter(cases | dict.fromkeys((*FIRST, *MORE)))


def commands() -> Iterator[str]:
    """Commands of analyses with each of their options, and what all commands say of themselves."""
    from gptviz.commands import COMMANDS

    for name in (command.name for command in COMMANDS):
        yield f"{name} --help"
        if name == "app":
            # all else goes to Streamlit, which would end this process
            continue
        yield f"{name} --no-such-option"
        yield f"{name} --model no-such-model"
    for model, prompt in PROMPTS.items():
        for line in (line for line in ASKED.splitlines() if line):
            asked = shlex.split(line.replace("MODEL", model))
            typed = shlex.join(prompt if word == "PROMPT" else word for word in asked)
            yield typed
            yield f"{typed} --json"


def _element(node: Any) -> Any:
    """What a reader sees of an element of a page."""
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

    proto = getattr(node, "proto", None)
    kind = type(proto).__name__
    if proto is None or kind == "Block":
        return None
    if kind == "BidiComponent":
        return [proto.component_name, _sent(bytes(proto.bytes)), proto.json]
    if kind == "PlotlyChart":
        return [kind, _plain(json.loads(proto.spec))]
    if kind == "ArrowData" or kind == "Arrow":
        return [kind, _plain(node.value.to_dict("list"))]
    return [kind, _without_ids(MessageToDict(proto))]


def _sent(packed: bytes) -> Any:
    """What the script of a view gets."""
    from gptviz.components.kit import unpack

    if packed[4:5] != b"{":
        return packed.decode("utf-8", "replace")[: 100 * KEPT]
    header, arrays = unpack(packed)
    return [_plain(header), {name: _plain(array) for name, array in arrays.items()}]


def _without_ids(value: Any) -> Any:
    """A message without the names that Streamlit makes up."""
    if isinstance(value, dict):
        return {
            key: _without_ids(each)
            for key, each in value.items()
            if key not in ("id", "formId", "pageScriptHash", "url")
        }
    return [_without_ids(each) for each in value] if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it; of a long array the first numbers, and how large all are."""
    if isinstance(value, dict) and value.keys() >= {"dtype", "bdata"}:
        return _plain(np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]))
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "numpy"):
        value = value.numpy(force=True)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            return [value.shape, [str(each) for each in value.flat[:KEPT]]]
        flat = value.ravel().astype(float)
        size = float(np.nansum(np.abs(flat)))
        return [list(value.shape), size, [float(each) for each in flat[:KEPT]]]
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else str(type(value))


def differences(before: Any, now: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two recordings differ, with what stood there and what stands there now."""
    if before == DIFFERS or now == DIFFERS:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*before, *(key for key in now if key not in before)]
        for key in (key for key in keys if key not in OF_PROCESS):
            yield from differences(before.get(key), now.get(key), f"{where}/{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}/{index}")
    elif not _is_same(before, now):
        yield where, before, now


def _is_same(before: Any, now: Any) -> bool:
    # a name that a page makes up for what it shows depends on the folder that it runs in
    if all(isinstance(each, str) and MADE_UP.fullmatch(each) for each in (before, now)):
        return True
    numbers = (int, float)
    if isinstance(before, numbers) and isinstance(now, numbers):
        return bool(np.isclose(before, now, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))
    return type(before) is type(now) and before == now


def _masked(first: Any, second: Any) -> Any:
    """A recording without what another one of the same code has otherwise."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {
            key: _masked(first[key], second[key]) if key in second else DIFFERS for key in first
        }
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [_masked(one, other) for one, other in zip(first, second, strict=True)]
    return first if _is_same(first, second) else DIFFERS


def _recorded(case: tuple[str, str]) -> tuple[str, Any]:
    kind, text = case
    try:
        found = (record_page if kind == "page" else record_command)(text)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return f"{kind} {text}", json.loads(json.dumps(found))


def record() -> dict[str, Any]:
    """The recording of all cases, by case."""
    cases = [("page", case) for case in pages()] + [("command", case) for case in commands()]
    wanted = os.environ.get("ONLY", "")
    cases = [case for case in cases if wanted in " ".join(case)]
    found = {}
    with (
        tempfile.TemporaryDirectory() as home,
        ProcessPoolExecutor(
            2, get_context("spawn"), _begin, (home,), max_tasks_per_child=200
        ) as workers,
    ):
        for case, recorded in workers.map(_recorded, cases, chunksize=4):
            found[case] = recorded
            if len(found) % 50 == 0:
                print(f"{len(found)} of {len(cases)}", file=sys.stderr)
    return found


def _begin(home: str) -> None:
    """Begin a process that records, in the folder of a user who has nothing."""
    logging.disable(logging.WARNING)
    os.environ |= {"GPTVIZ_HOME": f"{home}/gptviz", "HOME": home, "COLUMNS": "100"}


def main(path: Path) -> int:
    """Record what there is now into `path`, or compare it with what is recorded there."""
    now = record()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_masked(now, record())), encoding="utf-8")
        print(f"{len(now)} cases are recorded.")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    wanted = os.environ.get("ONLY", "")
    before = {case: each for case, each in before.items() if wanted in case}
    found = list(differences(before, now))
    for where, old, new in found:
        print(f"{where}\n  - {json.dumps(old)[:300]}\n  + {json.dumps(new)[:300]}")
    print(f"{len(found)} differences in {len({where.split('/')[1] for where, *_ in found})} cases")
    return bool(found)


if __name__ == "__main__":
    # of this name, since a page that a worker runs is its main module
    from tests.goldens import main as compare

    sys.exit(compare(Path(sys.argv[1])))
