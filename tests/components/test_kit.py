"""What the hand-made views share: the payload, events, and that no view makes HTML of text. Its
browser half: tests/browser.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gptviz.components import kit
from gptviz.components.kit import pack, unpack
from gptviz.components.kit.events import (
    Possible,
    list_up_to,
    number_between,
    or_none,
    read_event,
    text_up_to,
)
from gptviz.components.kit.modules import join_modules

VIEWS = sorted(
    folder
    for folder in Path(kit.__file__).parents[1].iterdir()
    if (folder / f"{folder.name}.js").exists() and folder.name != "kit"
)


@pytest.mark.parametrize("kind", kit.ARRAY_KINDS)
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
    assert all(
        (start + array["offset"]) % 8 == 0
        for array in json.loads(packed[4 : 4 + length])["arrays"].values()
    )


@pytest.mark.parametrize(
    "array", [np.zeros(2, np.int64), np.array(["a"]), np.zeros(2, bool), np.zeros(2, complex)]
)
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
    [
        ({"at": 1}, {"at": 1}),
        ('{"at": 1}', {"at": 1}),
        ("{", None),
        ([1], None),
        ("[1]", None),
        (None, None),
        (3, None),
    ],
)
def test_an_event_is_a_dictionary_or_nothing(
    value: object, expected: dict[str, int] | None
) -> None:
    assert read_event(value, at=range(2)) == expected


# Nothing that JSON can say is taken for another thing that Python holds equal to it.
SAID = (
    None,
    True,
    False,
    0,
    1,
    2,
    -1,
    1.0,
    1.5,
    "",
    "1",
    "a",
    "ab",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
    float("nan"),
    10**400,
)


@pytest.mark.parametrize(
    ("possible", "expected"),
    [
        (range(2), [0, 1]),
        ({"a": 7, "ab": 8}, ["a", "ab"]),
        ({1: "x"}, [1]),
        ("ab", ["ab"]),
        (1, [1]),
        (or_none(range(2)), [None, 0, 1]),
        (text_up_to(1), ["", "1", "a"]),
        (number_between(1, 1.5), [1, 1.0, 1.5]),
        (list_up_to(1, range(2)), [[], [1]]),
    ],
    ids=[
        "range",
        "names",
        "numbers",
        "text",
        "number",
        "maybe",
        "text_up_to",
        "number_between",
        "list_up_to",
    ],
)
def test_a_field_is_believed_if_its_value_is_possible(
    possible: Possible, expected: list[object]
) -> None:
    believed = [
        fields["it"]
        for value in SAID
        if (fields := read_event({"it": value, "more": 1}, it=possible)) is not None
    ]
    assert [(type(one), one) for one in believed] == [(type(one), one) for one in expected]
    assert read_event({"it": "none of them", "other": 0}, it=possible, other=range(1)) is None


def source(folder: Path) -> str:
    """The scripts of a view without comments, which may say what they like."""
    return re.sub(
        r"/\*.*?\*/|^\s*//.*?$",
        "",
        "".join(file.read_text() for file in folder.glob("*.js")),
        flags=re.DOTALL | re.MULTILINE,
    )


@pytest.mark.parametrize("folder", [kit.FOLDER, *VIEWS], ids=lambda folder: folder.name)
def test_no_view_makes_html_of_text_or_reaches_out(folder: Path) -> None:
    ways = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
        "createContextualFragment",
    )
    assert not [
        way
        for way in (*ways, "new Function", "fetch(", "XMLHttpRequest", "import(")
        if way in source(folder)
    ]


def test_the_roles_have_the_colours_of_the_figures() -> None:
    written = (kit.FOLDER / "roles.js").read_text()
    assert dict(re.findall(r'^  (\w+): "(#\w+)",$', written, re.MULTILINE)) == kit.ROLES


def write(folder: Path, **modules: str) -> Path:
    """Modules in a folder; the first is the one that is joined."""
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder / f"{next(iter(modules))}.js"


def test_a_module_comes_after_all_it_imports_and_once(tmp_path: Path) -> None:
    first = write(
        tmp_path,
        first='import { b } from "./second.js";\nimport { c as other } from "./third.js";\nexport '
        "default b + other;\n",
        second='import {\n  c,\n} from "./third.js";\nexport const b = c;\n',
        third="export const c = 1;\n",
    )
    text = join_modules(first)
    assert text.count("const c = 1;") == 1
    assert (
        text.index("const c = 1;")
        < text.index("const b = c;")
        < text.index("export default b + other;")
    )
    assert "import" not in text


def test_comments_stay_behind_and_code_beside_them_does_not(tmp_path: Path) -> None:
    code = '/** @type {A} */ (a).b = 1;\nconst c = "/** x */";\n'
    assert (
        join_modules(write(tmp_path, a=f"/**\n * Words.\n */\n{code}  /** More. */\nf();\n"))
        == f"{code}f();\n"
    )


@pytest.mark.parametrize(
    ("modules", "error"),
    [
        (
            {"a": 'import { x } from "./b.js";\n', "b": "const x = 1;\n"},
            "a.js imports x, which b.js does not export",
        ),
        (
            {
                "a": 'import { x } from "./b.js";\n',
                "b": 'import { y } from "./a.js";\nexport const x = 1;\n',
            },
            "a.js → b.js → a.js",
        ),
        ({"a": 'import * as b from "./b.js";\n'}, "not understood: import"),
        ({"a": "export let x = 1;\n"}, "not understood: export let"),
        (
            {"a": 'import { x } from "./b.js";\n', "b": "export const x = 1;\nexport default x;\n"},
            "default export",
        ),
    ],
    ids=["missing", "circle", "star", "changing", "default"],
)
def test_modules_that_cannot_be_joined_are_refused(
    tmp_path: Path, modules: dict[str, str], error: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        join_modules(write(tmp_path, **modules))


@pytest.mark.parametrize("folder", VIEWS, ids=lambda folder: folder.name)
def test_a_view_is_one_script_that_uses_all_its_modules(folder: Path) -> None:
    script = kit.script(folder)
    assert script.count("export default view(") == 1
    # `payload.js` is of the page "Try it"
    modules = {file.stem for file in folder.glob("*.js")} - {folder.name, "payload"}
    assert not [name for name in modules if f"${folder.name}_{name}" not in script]


def test_the_script_of_a_view_travels_apart_from_its_numbers_and_does_not_change() -> None:
    def script() -> None:
        import streamlit as st

        from gptviz.components.token_strip import Token, token_strip

        token_strip([Token("a")] * st.session_state.get("tokens", 1), key="strip")

    at = AppTest.from_function(script).run()
    view, provided = (one.proto for one in at.get("bidi_component"))
    assert len(view.js_content) + len(view.css_content) + len(view.html_content) < 3_000
    assert len(provided.js_content) > 10_000, "Streamlit sends shorter messages each time"
    at.session_state["tokens"] = 2
    again_view, again_provided = (one.proto for one in at.run().get("bidi_component"))
    assert again_provided == provided
    assert again_view.bytes != view.bytes
    assert (again_view.id, again_view.component_name, again_view.js_content) == (
        view.id,
        view.component_name,
        view.js_content,
    )


def test_of_several_views_of_a_kind_the_first_that_is_shown_carries_their_script() -> None:
    def page() -> None:
        import streamlit as st

        from gptviz.components import kit
        from gptviz.components.page_helpers import page_helpers
        from gptviz.components.token_strip import Token, token_strip

        kit.begin_page()
        for key in st.session_state["shown"]:
            page_helpers(key=key)
        token_strip([Token("a")], key="of another kind")

    at = AppTest.from_function(page)
    for shown in (["a", "b", "c"], ["a", "b", "c"], ["c", "b"], []):
        at.session_state["shown"] = shown
        at.run()
        scripts = [
            one.proto.id
            for one in at.get("bidi_component")
            if one.proto.component_name.endswith("_script")
        ]
        assert len(at.get("bidi_component")) == len(shown) + 1 + len(scripts)
        assert [
            any(name.endswith(f"-{key} script") for name in scripts)
            for key in (*shown, "of another kind")
        ] == [
            *(place == 0 for place in range(len(shown))),
            True,
        ]


def test_what_a_view_says_while_its_page_is_left_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{tmp_path.name}.js").write_text("export default 1;")
    (tmp_path / f"{tmp_path.name}.css").touch()
    mounted: dict[str, Any] = {}
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st.components.v2, "component", lambda *_, **__: mounted.update)
    heard: list[Any] = []
    kit.register(tmp_path)(key="view", data=b"", size=heard.append)
    mounted["on_size_change"]()
    assert heard == []
    state["view"] = {"size": 3}
    mounted["on_size_change"]()
    assert heard == [3]
