"""What the hand-made views share: the payload, events, and that no view makes HTML of text. Its browser half: tests/browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gptviz.components import kit
from gptviz.components.kit import event, pack, unpack

VIEWS = sorted(
    folder
    for folder in Path(kit.__file__).parents[1].iterdir()
    if (folder / f"{folder.name}.js").exists() and folder.name != "kit"
)


@pytest.mark.parametrize("kind", kit.KINDS)
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3, 5)])
def test_arrays_travel_bit_for_bit(kind: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    array = (100 * random.normal(size=shape)).astype(kind)
    header, arrays = unpack(pack({"name": "x"}, first=np.arange(3, dtype=np.uint8), array=array))
    assert header == {"name": "x"}
    assert arrays["array"].dtype == kind
    assert arrays["array"].shape == shape
    assert arrays["array"].tobytes() == array.tobytes()


def test_an_array_may_lie_anywhere_in_memory() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-3].T
    assert (unpack(pack({}, array=array))[1]["array"] == array).all()


def test_every_array_begins_where_the_browser_can_read_it() -> None:
    packed = pack({"odd": "x"}, one=np.zeros(1, np.uint8), two=np.zeros(3, np.float64))
    length = int.from_bytes(packed[:4], "little")
    start = -(-(4 + length) // 8) * 8
    assert all((start + array["offset"]) % 8 == 0 for array in json.loads(packed[4 : 4 + length])["arrays"].values())


@pytest.mark.parametrize("array", [np.zeros(2, np.int64), np.array(["a"]), np.zeros(2, bool), np.zeros(2, complex)])
def test_an_array_the_browser_cannot_read_is_named(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="'odd'"):
        pack({}, odd=array)


def test_a_number_json_lacks_is_refused_in_the_header() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack({"x": float("nan")})


@pytest.mark.parametrize("text", ["\ud800", "\u202e", "\x00", "</script>", "שלום"])
def test_any_text_travels(text: str) -> None:
    assert unpack(pack({"text": text}))[0] == {"text": text}


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"at": 1}, {"at": 1}), ('{"at": 1}', {"at": 1}), ("{", None), ([1], None), ("[1]", None), (None, None), (3, None)],
)
def test_an_event_is_a_dictionary_or_nothing(value: object, expected: dict[str, int] | None) -> None:
    assert event(value) == expected


def source(folder: Path) -> str:
    return "".join(file.read_text() for file in sorted(folder.glob("*.js")))


def declared(script: str) -> list[str]:
    """The names a script declares at its top."""
    return re.findall(r"^(?:export default )?(?:async )?(?:function\*?|const|let|class) (\w+)", script, re.MULTILINE)


@pytest.mark.parametrize("folder", [kit.FOLDER, *VIEWS], ids=lambda folder: folder.name)
def test_no_view_makes_html_of_text_or_reaches_out(folder: Path) -> None:
    ways = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser", "createContextualFragment")
    assert not [way for way in (*ways, "new Function", "fetch(", "XMLHttpRequest", "import(") if way in source(folder)]


@pytest.mark.parametrize("folder", VIEWS, ids=lambda folder: folder.name)
def test_a_view_uses_the_kit_and_declares_nothing_twice(folder: Path) -> None:
    names = declared(kit.script(folder))
    assert {"view", "unpack", "make", "percent", "tools"} <= set(names)
    assert not [name for name, times in Counter(names).items() if times > 1]
    assert source(folder).count("export default view(") == 1
