"""The reader's own names and notes on units: on every page that names the unit, in links and in
files; for who only reads too, who writes none.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.interp.units.unit import unit
from gptviz.runs import checkpoints
from gptviz.runs.notes import Note, read_notes, write_note
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.takehome.page import PlainText, read_page
from gptviz.ui.widgets.markdown import escape_markdown
from tests.app.opening import drawn, opened, says

MODEL = "sentences"
HEAD = "blocks.1.attention.head.2"
NEURON = "blocks.1.mlp.neuron.5"
FEATURE = "dictionary.sentences-features.feature.7"
# It would be bold, a link, an image and a tag in Markdown and HTML.
NAME = "**b** [a](b) ![i](j) <i>x</i> $x$"
PROMPT = "When Mary and John went to the shop, John gave a book to"


def keep(of: str, **notes: str) -> None:
    write_note(checkpoints.find(MODEL), of, **notes)


def kept(name: str) -> Note:
    return read_notes(checkpoints.find(MODEL)).get(name, Note())


def title_of(name: str) -> str:
    config = checkpoints.read_config(checkpoints.find(MODEL))
    return unit(name, config).title


def everything(at: AppTest) -> str:
    """All that a page says and draws, as text; labels of controls too."""
    labels = [str(one.label) for kind in (at.button, at.expander) for one in kind] + [
        str(one.proto.label) for one in at.main.get("page_link")
    ]
    options = [option for one in at.selectbox for option in one.options]
    shown = json.dumps(drawn(at)[1], ensure_ascii=False, default=str)
    frames = [str(one.value.to_dict()) for one in at.dataframe]
    texts = [says(at), *(label.replace("\\", "") for label in labels), *options, *frames]
    return "\n".join([*texts, shown.replace("\\\\", "\\")])


# For each page that names a unit: its address, the unit, and words around the name.
PAGES = {
    "heads": ({"unit": HEAD}, HEAD, "Switch off head 2 of block 1 (“{}”)"),
    "heads where": ({"unit": HEAD, "view": "Where it does most"}, HEAD, "(“{}”)** adds a vector"),
    "neurons": ({"unit": NEURON}, NEURON, "Neuron 5 of block 1 (“{}”) answers most to"),
    "features": ({"unit": FEATURE}, FEATURE, "(feature 7 (“{}”))"),
    "attribution": ({"part": HEAD}, HEAD, "Head 2 of block 1 (“{}”)** adds"),
    "circuit": ({"prompt": PROMPT}, HEAD, "head 2 of block 1 (“{}”) at"),
    "attention": ({"block": "1", "head": "2"}, HEAD, "{}"),
    "switch_off": ({"edits": HEAD}, HEAD, "Without head 2 of block 1 (“{}”)"),
    "stream": ({}, "blocks.1.attention", "the attention of block 1 (“{}”)"),
}


@pytest.mark.parametrize("case", PAGES)
def test_a_page_that_names_a_unit_says_what_the_reader_calls_it_and_as_text(
    home: Path, case: str
) -> None:
    query, name, words = PAGES[case]
    page = f"pages/{case.split()[0]}.py"
    without = everything(opened(page, model=MODEL, **query))
    keep(name, name=NAME)
    at = opened(page, model=MODEL, **query)
    assert NAME not in without
    assert words.format(NAME) in everything(at)
    # where text is Markdown it is escaped
    for kind in (at.markdown, at.caption, at.info):
        for one in kind:
            said = str(one.value)
            assert "**b**" not in said
            assert "[a](b)" not in said
            assert "<i>" not in said


def test_without_names_no_page_says_anything_more(home: Path) -> None:
    at = opened("pages/heads.py", model=MODEL, unit=HEAD)
    assert "called" not in at.query_params
    assert "(“" not in everything(at)
    assert "Your note on" not in says(at)


def test_a_note_stands_below_the_figures_as_text(home: Path) -> None:
    keep(HEAD, note="<b>one</b>\n# two")
    at = opened("pages/heads.py", model=MODEL, unit=HEAD)
    assert "Your note on head 2 of block 1" in says(at)
    assert [one.value for one in at.text] == ["<b>one</b>\n# two"]
    assert not opened("pages/heads.py", model=MODEL, unit="blocks.0.attention.head.0").text


def test_the_address_has_the_name_of_the_unit_on_screen_and_of_no_other(home: Path) -> None:
    keep(HEAD, name="copies names")
    at = opened("pages/heads.py", model=MODEL, unit=HEAD)
    assert at.query_params["called"] == f"{MODEL} {HEAD} copies names"
    at.query_params["unit"] = "blocks.0.attention.head.0"
    at.run()
    assert "called" not in at.query_params


def test_a_link_brings_the_name_to_who_has_none_and_takes_no_place_of_their_own(
    home: Path,
) -> None:
    query = {"model": MODEL, "unit": HEAD, "called": f"{MODEL} {HEAD} {NAME}"}
    at = opened("pages/heads.py", **query)
    assert f"Switch off head 2 of block 1 (“{NAME}”)" in everything(at)
    assert at.query_params["called"] == query["called"]
    # nothing is kept by opening a link
    assert not (home / "notes").exists()
    keep(HEAD, name="mine")
    at = opened("pages/heads.py", **query)
    assert NAME not in everything(at)
    assert "Switch off head 2 of block 1 (“mine”)" in everything(at)


@pytest.mark.parametrize(
    "called",
    [
        "",
        "x",
        HEAD,
        f"addition {HEAD} gazelle",
        f"{MODEL} blocks.0.mlp gazelle",
        f"{MODEL} {HEAD} {'x' * 61}",
    ],
)
def test_a_link_about_something_else_names_nothing(home: Path, called: str) -> None:
    at = opened("pages/heads.py", model=MODEL, unit=HEAD, called=called)
    assert not at.exception
    assert "head 2 of block 1 (“" not in everything(at)
    assert "called" not in at.query_params


def test_the_name_of_a_link_is_said_of_no_other_model(home: Path) -> None:
    query = {"unit": HEAD, "called": f"{MODEL} {HEAD} gazelle"}
    assert "gazelle" not in everything(opened("pages/heads.py", model="jobs-90", **query))


def form(unit: str = HEAD, **query: str) -> AppTest:
    """Heads, as a reader of the app has it."""
    at = opened("pages/heads.py", model=MODEL, unit=unit, **query)
    del at.session_state[READ_AS_A_WHOLE]
    return at.run()


def write(at: AppTest, name: str, note: str) -> AppTest:
    at.text_input(key=f"name of {MODEL} {HEAD}").set_value(name)
    at.text_area(key=f"note on {MODEL} {HEAD}").set_value(note)
    (button,) = (one for one in at.button if one.label == "Keep name and note")
    return button.click().run()


def test_what_is_typed_is_kept_and_shown_at_once(home: Path) -> None:
    at = write(form(), " copies \n names", "see lesson 3")
    assert kept(HEAD) == Note("copies names", "see lesson 3")
    assert "Switch off head 2 of block 1 (“copies names”)" in everything(at)
    assert "see lesson 3" in says(at)
    write(at, "", "")
    assert kept(HEAD) == Note()
    assert "(“" not in everything(at)


def test_the_name_of_a_link_is_kept_by_the_button_and_taken_away_by_an_empty_field(
    home: Path,
) -> None:
    link = {"called": f"{MODEL} {HEAD} gazelle"}
    at = form(**link)
    assert "The link calls it “gazelle”" in says(at)
    assert at.text_input(key=f"name of {MODEL} {HEAD}").value == "gazelle"
    write(at, "gazelle", "")
    assert kept(HEAD) == Note("gazelle")
    write(at, "", "")
    assert kept(HEAD) == Note()
    assert "gazelle" not in everything(at)


def test_what_cannot_be_kept_is_said_where_it_was_typed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = form()
    (home / "notes").mkdir()
    (home / "notes" / "sentences.json").mkdir()
    at = write(at, "copies", "")
    assert "sentences.json cannot be read (it is a folder" in says(at)
    assert not at.exception


def test_a_damaged_file_is_named_and_the_page_stays(home: Path) -> None:
    keep(HEAD, name="copies")
    file = home / "notes" / "sentences.json"
    file.write_text("{")
    at = form()
    assert not at.exception
    assert "sentences.json cannot be read" in at.warning[0].value.replace("\\", "")
    assert not [one for one in at.button if one.label == "Keep name and note"]
    assert file.read_text() == "{"


def test_who_only_reads_sees_them_and_has_no_form(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(HEAD, name="copies", note="why")
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    at = form()
    assert "Switch off head 2 of block 1 (“copies”)" in everything(at)
    assert "why" in says(at)
    assert not [one for one in at.button if one.label == "Keep name and note"]
    assert not [one for one in at.text_input if "name of" in str(one.key)]


def test_a_page_that_is_taken_home_has_them_and_no_form(home: Path) -> None:
    keep(HEAD, name="copies", note="why <b>")
    content = read_page("heads", {"model": MODEL, "unit": HEAD})
    assert PlainText("why <b>") in content.pieces_of(PlainText)
    assert "copies" in str(content.pieces)
    assert "Your name for it" not in str(content.pieces)
    link = {"model": MODEL, "unit": NEURON, "called": f"{MODEL} {NEURON} gazelle"}
    taken = read_page("neurons", link)
    assert taken.rejected == {}
    assert escape_markdown("(“gazelle”)") in str(taken.pieces).replace("\\\\", "\\")


def test_every_kind_of_unit_has_a_form_on_its_page(home: Path) -> None:
    for page, query in {
        "neurons": {},
        "features": {},
        "stream": {"view": "Steering"},
        "attribution": {"part": "blocks.0.mlp"},
    }.items():
        at = opened(f"pages/{page}.py", model=MODEL, **query)
        del at.session_state[READ_AS_A_WHOLE]
        at.run()
        assert [one for one in at.button if one.label == "Keep name and note"], page
