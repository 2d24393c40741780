"""The page "Open a model" as a reader meets it, without a browser."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from gptviz.machine import memory, progress
from gptviz.pretrained.places import download
from gptviz.runs import checkpoints, import_job, sharing
from gptviz.text.tokenizers.symbols import SymbolTokenizer
from gptviz.ui.pages.open_model import here, source
from gptviz.ui.shell.subject import model_list
from tests.app.opening import ROOT, opened, press, says
from tests.pretrained.fake_hub import FakeHub, fake_hub
from tests.pretrained.test_families import GROUPED, VOCAB, theirs
from tests.pretrained.test_mapping import CourseGPT
from tests.tiny import TinyModel
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("fresh_caches")
PAGE = "pages/open_model.py"


@pytest.fixture(autouse=True)
def _no_import_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(import_job, "_current", None)
    yield
    if isinstance(last := import_job.current_import(), import_job.ImportJob):
        last.stop()
        last.wait()


def made(folder: Path) -> Path:
    """A small model as `transformers` saves it, with a tokenizer."""
    theirs("llama", GROUPED).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(SymbolTokenizer.numbers(VOCAB).to_json())
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    return folder


def finished(at: AppTest) -> AppTest:
    """The page once the import that it began has ended."""
    last = import_job.current_import()
    assert last is not None
    last.wait()
    return at.run()


def test_without_any_model_here_the_page_says_where_it_looked_and_what_to_type(user: Path) -> None:
    at = opened(PAGE)
    assert "No model of another program was found on this machine" in says(at)
    assert {"GPT-2, from the hub", "TinyStories, from the hub"} <= {b.label for b in at.button}


def test_models_on_this_machine_are_listed_with_their_sizes_and_open_with_a_click(
    user: Path,
) -> None:
    folder = made(user / "hub" / "models--someone--tiny" / "snapshots" / "abc")
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text("abc")
    odd = user / ".lmstudio" / "models" / "odd.gguf"
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"GGUF")
    at = opened(PAGE)
    text = says(at)
    assert "**someone/tiny**" in text
    assert "Llama, 17,208 parameters, " in text
    assert "licence mit" in text
    assert "odd.gguf is damaged or cut short" in text
    assert [b.label for b in at.button].count("Open") == 1
    at = finished(press(at, "Open"))
    text = says(at)
    assert "tiny is open: Llama, 17,208 parameters." in text
    assert "from someone/tiny" in text
    assert checkpoints.is_reference(checkpoints.find("tiny"))
    links = {link.proto.label: link.proto.query_string for link in at.main.get("page_link")}
    assert links["Attention"] == "model=tiny"
    assert not [b for b in at.button if b.label == "Open"], (
        "it leads to the model that is there already"
    )


def test_a_model_too_large_for_the_memory_is_listed_with_both_numbers_and_has_no_button(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(user / "hub" / "models--someone--tiny" / "snapshots" / "abc")
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 20_000)
    at = opened(PAGE)
    assert "of memory, " in says(at)
    assert "and 20 kB is free" in says(at)
    assert not [b for b in at.button if b.label == "Open"]


def test_heads_are_read_a_few_at_a_time_and_the_page_says_how_many(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        made(user / "hub" / f"models--someone--tiny{number}" / "snapshots" / "abc")
    monkeypatch.setattr(here, "SECONDS", 0)
    assert opened(PAGE).get("progress")[0].proto.text == "Reading the heads of their files: 0 of 3"
    monkeypatch.setattr(here, "SECONDS", 600)
    at = opened(PAGE)
    assert not at.get("progress")
    assert [b.label for b in at.button].count("Open") == 3
    monkeypatch.setattr(here, "SECONDS", 0)
    assert [b.label for b in opened(PAGE).button].count("Open") == 3, (
        "what was read is not read again"
    )


def test_a_folder_that_was_typed_is_looked_at_and_what_cannot_be_opened_is_said(user: Path) -> None:
    made(user / "mine" / "tiny")
    (user / "empty").mkdir()
    at = opened(PAGE, source=str(user / "mine" / "tiny"))
    assert "Llama, 17,208 parameters" in says(at)
    at = opened(PAGE, source=str(user / "mine"))
    assert "**tiny**" in says(at)
    at = opened(PAGE, source=str(user / "empty"))
    assert "No model was found in" in says(at)
    os.mkfifo(user / "pipe.gguf")  # reading it would wait for ever
    for place in (user / "pipe.gguf", Path("/dev/zero")):
        at = opened(PAGE, source=str(place))
        assert not [b for b in at.button if b.label == "Open"]
    at = opened(PAGE, source="/nowhere/at/all")
    assert "There is nothing at /nowhere/at/all" in says(at)


def test_a_model_that_turns_out_unsound_is_an_error_on_the_page_and_leaves_nothing(
    user: Path,
) -> None:
    folder = made(user / "mine")
    (folder / "tokenizer.json").write_text("{")
    at = opened(PAGE, source=str(folder))
    at = finished(press(at, "Open"))
    assert "tokenizer.json is damaged" in says(at)
    assert not checkpoints.own_folder().exists()
    press(at, "Close")
    assert import_job.current_import() is None


def test_a_file_of_tensors_is_opened_with_the_mapping_that_is_drafted_for_it_and_what_does_not_match_is_shown(
    user: Path,
) -> None:
    torch.save(CourseGPT().state_dict(), user / "course.pt")
    at = opened(PAGE, source=str(user / "course.pt"))
    assert "does not say what model they are of" in says(at)
    box = at.text_area[0]
    draft = json.loads(box.value)
    at = box.set_value(json.dumps(draft | {"config": draft["config"] | {"n_layer": 1}})).run()
    assert set(at.dataframe[0].value["state"]) - {"matched"}
    assert "do not match: the table says which" in says(at)
    at = at.text_area[0].set_value("{").run()
    assert "This mapping does not open the file" in says(at)
    at = at.text_area[0].set_value(json.dumps(draft)).run()
    assert set(at.dataframe[0].value["state"]) == {"matched"}
    at = finished(next(b for b in at.button if b.key == "open with a mapping").click().run())
    assert "course is open" in says(at)


@pytest.fixture
def server(user: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(download, "WAIT", 0.0)
    with fake_hub(user / "hub", monkeypatch) as server:
        server.add("someone/tiny", made(user / "made"), licence="apache-2.0")
        yield server


def test_a_link_never_asks_the_hub_by_itself(server: FakeHub) -> None:
    at = opened(PAGE, source="someone/tiny")
    assert "someone/tiny is not on this machine" in says(at)
    assert server.asked == []
    at = press(at, "Ask the hub")
    assert "/api/models/someone/tiny" in [path for _, path, _ in server.asked]
    assert "Fetch and open" in [b.label for b in at.button]


def test_a_model_that_is_here_without_its_tokenizer_opens_as_it_is_or_is_looked_up(
    server: FakeHub, user: Path
) -> None:
    folder = made(user / "hub" / "models--someone--tiny" / "snapshots" / "abc")
    (folder / "tokenizer.json").unlink()
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text("abc")
    at = opened(PAGE, source="someone/tiny")
    assert "is not on this machine as a whole: the hub may have the rest" in says(at)
    # where it was asked for, and in the list
    assert [b.label for b in at.button].count("Open") == 2
    assert "Ask the hub" in [b.label for b in at.button]
    at = finished(press(at, "Open"))
    assert "tiny is open" in says(at)
    assert "It came without a tokenizer" in says(at)
    assert server.asked == []


def test_a_typed_name_is_looked_up_with_its_size_then_fetched_and_opened(
    server: FakeHub, user: Path
) -> None:
    at = opened(PAGE)
    at.text_input(key="source").set_value("someone/tiny").run()
    assert "Llama, 17,208 parameters, needs about " in says(at)
    assert "licence apache-2.0" in says(at)
    assert " are fetched from the hub" in says(at)
    assert not list((user / "hub").rglob("*.safetensors"))
    at = finished(press(at, "Fetch and open"))
    assert "tiny is open" in says(at)
    card = json.loads((checkpoints.find("tiny") / "card.json").read_text())
    assert (card["imported_from"], card["licence"], card["command"]) == (
        "someone/tiny",
        "mit",
        "gptviz import someone/tiny",
    )


def test_stop_leaves_nothing_half_made_and_keeps_what_has_arrived(
    server: FakeHub, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "CHUNK", 1_000)

    report = progress.report

    def slowly(done: int, of: int, step: str = "") -> None:
        report(done, of, step)
        if done >= 9_000:  # until somebody stops it
            wait_until(lambda: import_job.current_import().is_stopping)  # type: ignore[union-attr]

    monkeypatch.setattr(progress, "report", slowly)
    at = opened(PAGE)
    at.text_input(key="source").set_value("someone/tiny").run()
    press(at, "Fetch and open")
    wait_until(lambda: import_job.current_import().progress.done >= 9_000)  # type: ignore[union-attr]
    at = opened(PAGE)  # another visit sees it too
    at = finished(press(at, "Stop"))
    assert "was stopped. Nothing was imported" in says(at)
    assert not checkpoints.own_folder().exists()
    assert [part.stat().st_size for part in (user / "hub").rglob("*.part")] != []


def test_reading_the_weights_can_be_stopped_too(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = progress.report

    def stopped_at_once(done: int, of: int, step: str = "") -> None:
        if done == 3:
            wait_until(import_job.goes_on)
            import_job.current_import().stop()  # type: ignore[union-attr]
        read(done, of, step)

    monkeypatch.setattr(progress, "report", stopped_at_once)
    last = import_job.begin(str(made(user / "mine")))
    last.wait()
    assert (last.state, last.progress.step, last.progress.done, last.title) == (
        "stopped",
        "tensor",
        2,
        "mine",
    )
    assert not checkpoints.own_folder().exists()


def test_without_network_the_page_says_so_and_stays(user: Path) -> None:
    at = opened(PAGE)
    at.text_input(key="source").set_value("someone/other").run()
    assert "the hub may not be asked (HF_HUB_OFFLINE is set)" in says(at)
    at.text_input(key="words for the hub").set_value("tiny")
    press(at, "Search")
    assert "The search is not possible: the hub may not be asked" in says(at)


def test_a_search_gives_names_that_are_looked_up_with_a_click(server: FakeHub) -> None:
    at = opened(PAGE)
    at.text_input(key="words for the hub").set_value("tiny")
    at = press(at, "Search")
    found = next(
        b
        for b in at.button
        if b.label.replace("\\", "").startswith("**someone/tiny** · Llama, 1,234 parameters")
    )
    at = found.click().run()
    assert "Fetch and open" in [b.label for b in at.button]


def test_the_server_takes_a_zip_as_large_as_the_page_says() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert settings["server"]["maxUploadSize"] >= source.MOST_UPLOADED


def test_a_dropped_zip_becomes_a_model_and_a_bad_one_an_error(
    user: Path, tiny_model: TinyModel, tmp_path: Path
) -> None:
    sharing.pack(tiny_model("mine"), tmp_path / "mine.zip")
    at = opened(PAGE)
    at.file_uploader[0].upload("mine.zip", (tmp_path / "mine.zip").read_bytes()).run()
    assert "mine-2 is one of your models now" in says(at)
    assert "mine-2" in checkpoints.folders()
    at.file_uploader[0].upload("no.zip", b"no zip at all").run()
    assert at.error
    assert len(checkpoints.folders().keys() & {"mine", "mine-2", "mine-3", "no"}) == 2


def test_a_model_that_was_opened_is_removed_and_brought_back_and_its_files_stay(user: Path) -> None:
    folder = made(user / "tiny <b>x")
    import_job.begin(str(folder)).wait()
    at = opened(PAGE)
    [name] = [name for name in checkpoints.folders() if name.startswith("tiny")]
    assert f"stay at {folder}" in says(at)
    assert "licence mit" in says(at)
    at = press(at, "Remove")
    assert name not in checkpoints.folders()
    assert (folder / "model.safetensors").exists()
    at = press(at, "Undo")
    assert name in checkpoints.folders()


def test_what_was_imported_stands_in_every_list_with_source_and_licence(user: Path) -> None:
    folder = made(user / "mine")
    import_job.begin(str(folder)).wait()
    line = f"Llama, from {folder}, licence mit, 17,208 parameters"
    assert model_list.line_about(checkpoints.find("mine")) == line
    at = opened("pages/runs.py", model="mine")
    assert f"Llama, from {folder}, licence mit." in says(at)
    rows = {row["model"]: row for row in at.dataframe[0].value.to_dict("records")}
    assert (rows["mine"]["state"], rows["shakespeare"]["state"]) == ("imported", "finished")


def test_two_models_are_not_opened_at_once(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        title = "the first"
        is_active = True

    monkeypatch.setattr(import_job, "_current", Endless())
    with pytest.raises(
        checkpoints.CheckpointError,
        match="the first is being opened: wait until it is there, or stop it first",
    ):
        import_job.begin("the second")
    import_job.dismiss()
    assert import_job.goes_on()
    monkeypatch.setattr(import_job, "_current", None)


def test_a_read_only_server_looks_at_nothing_that_a_visitor_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "theirs")
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    for given in (str(folder), str(tmp_path / "missing"), "owner/name"):
        at = opened(PAGE, source=given)
        assert "opens no others: it is set to read-only" in says(at)
        assert not at.text_input
        assert given not in says(at)
    with pytest.raises(
        checkpoints.CheckpointError, match="this server shows models and keeps nothing"
    ):
        import_job.begin(str(folder))


def test_revisions_on_the_hub_become_snapshots_that_the_slider_of_every_page_steps_through(
    server: FakeHub, user: Path
) -> None:
    for step in (0, 8, 64, 512, 1000, 2000):
        torch.manual_seed(step)
        server.add_revision("someone/tiny", f"step{step}", made(user / f"step{step}"))
    at = opened(PAGE)
    at.text_input(key="source").set_value("someone/tiny").run()
    assert not [path for _, path, _ in server.asked if path.endswith("/refs")]
    at = press(at, "Ask for its revisions")
    assert "The hub has 6: step0, step8, step64, step512, step1000, step2000." in says(at)
    typed = next(one for one in at.text_area if one.label == "Revisions")
    assert typed.value == "step0, step8, step64, step512, step1000, step2000"
    assert "6 revisions: " in says(at)
    at = typed.set_value("step0, step9").run()
    assert "revision step9 of someone/tiny: the hub has no version" in says(at)
    typed = next(one for one in at.text_area if one.label == "Revisions")
    at = typed.set_value("step1000, step0, step64").run()
    assert "3 revisions: " in says(at)
    assert not list((user / "hub").rglob("*.safetensors")), "sizes are said beforehand"
    at = finished(press(at, "Fetch as snapshots"))
    assert "tiny is open" in says(at)
    assert "It has 3 snapshots, from step0 to step1000." in says(at)
    card = checkpoints.read_card(checkpoints.find("tiny"))
    assert card.command == "gptviz import someone/tiny --revisions step1000,step0,step64"
    assert "Revision step1000" in says(opened("pages/next_token.py", model="tiny"))
    first = opened("pages/next_token.py", model="tiny", prompt="1 2 3", step="0")
    assert not first.exception
    assert "Revision step0" in says(first)
    for path in ("attention", "lens", "heads", "circuit", "over_training"):
        at = opened(f"pages/{path}.py", model="tiny", prompt="1 2 3", step="64")
        assert not at.exception, path
        assert "Revision step64" in says(at), path


def test_fetching_revisions_can_be_stopped_and_what_has_arrived_stays(
    server: FakeHub, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "CHUNK", 1_000)
    for step in (0, 8):
        server.add_revision("someone/tiny", f"step{step}", made(user / f"step{step}"))
    report = progress.report

    def slowly(done: int, of: int, step: str = "", **more: str) -> None:
        report(done, of, step, **more)
        now = import_job.current_import()
        if now is not None and now.progress.doing == "revision step0" and done >= 9_000:
            wait_until(lambda: now.is_stopping)

    monkeypatch.setattr(progress, "report", slowly)
    import_job.begin("someone/tiny", revisions=["step0", "step8"])
    wait_until(lambda: import_job.current_import().progress.doing == "revision step0")  # type: ignore[union-attr]
    at = opened(PAGE)
    far = at.get("progress")[0].proto.text.replace("\\", "")
    assert "Fetching someone/tiny, revision step0: " in far
    at = finished(press(at, "Stop"))
    assert "Revisions that have arrived are snapshots of the model" in says(at)
    assert list(checkpoints.snapshots(checkpoints.find("tiny"))) == [8]
