"""The corpora: their counts and hashes, what a file may be, and the one text that is fetched."""

import hashlib
import importlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import (
    Corpus,
    CorpusUnavailableError,
    corpora,
    python_reference,
    read_corpus,
    tiny_shakespeare,
)

# `import gptviz.text.datasets.corpora` would name the function that hides the module.
module = importlib.import_module("gptviz.text.datasets.corpora")
CACHED = "corpora/tinyshakespeare.txt"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Address(HTTPServer):
    """A stand-in for the public address: what it sends, and how often it was asked."""

    answer = b""
    asked = 0


class Handler(BaseHTTPRequestHandler):
    server: Address

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    server = Address(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(
        module, "TINY_SHAKESPEARE_ADDRESS", f"http://127.0.0.1:{server.server_port}/input.txt"
    )
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@given(st.text(min_size=2), st.floats(0.01, 0.99))
def test_the_two_parts_of_a_split_are_the_text(text: str, fraction: float) -> None:
    corpus = Corpus("text", text)
    if not int(fraction * len(text)):
        with pytest.raises(ValueError, match="too few to split"):
            corpus.split(fraction)
        return
    train, validation = corpus.split(fraction)
    assert train + validation == text
    assert len(train) == int(fraction * len(text))
    assert validation


def test_tiny_shakespeare_splits_into_the_seeds_counts(shakespeare: str) -> None:
    train, validation = Corpus("tiny-shakespeare", shakespeare).split()
    assert (len(train), len(validation)) == (1_003_854, 111_540)


def test_a_corpus_is_known_by_the_hash_of_its_text() -> None:
    assert Corpus("a", "naïve").sha256 == hashlib.sha256("naïve".encode()).hexdigest()
    assert Corpus("a", "naïve") == Corpus("a", "naïve")
    assert len({Corpus("pasted", text).sha256 for text in ("\ud800", "\ud801", "?")}) == 3


def test_a_text_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "plays.txt"
    for data in (
        b"na\xc3\xafve\nline\n",
        b"\xef\xbb\xbfna\xc3\xafve\nline\n",
        b"na\xc3\xafve\r\nline\r",
    ):
        file.write_bytes(data)
        corpus = read_corpus(file)
        assert (corpus.name, corpus.text, corpus.source) == (
            "plays.txt",
            "naïve\nline\n",
            str(file),
        )
    assert read_corpus(str(file)) == corpus


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"abc\xffdef", r"\(byte 3 fits no character\).*save it as UTF-8"),
        (b"\xef\xbb\xbfab\xe2\x82", r"\(byte 5 fits no character\).*save it as UTF-8"),
        ("text".encode("utf-16"), r"UTF-16 mark\).*save it as UTF-8"),
        ("text".encode("utf-16-le"), r"is not text \(byte 1 is zero\).*save it as UTF-8"),
        (b"\x89PNG\r\n\x1a\n", r"\(byte 0 fits no character\)"),
        (b"x" * 101, "has 101 bytes, at most 100 are read"),
    ],
)
def test_a_file_that_is_no_text_is_refused_by_name_with_a_remedy(
    tmp_path: Path, data: bytes, message: str
) -> None:
    file = tmp_path / "upload.bin"
    file.write_bytes(data)
    with pytest.raises(ValueError, match=rf"upload\.bin.*{message}"):
        read_corpus(file, limit=100)


def test_a_file_of_just_the_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "full.txt"
    file.write_bytes(b"x" * 100)
    assert len(read_corpus(file, limit=100).text) == 100


def test_a_file_that_may_not_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("text")
    assert read_corpus(file).text == "text"

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Taking the permission away would not stop root, who runs the tests in a container.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"secret\.txt may not be read"):
        read_corpus(file)


def test_the_python_reference_is_there_and_always_the_same() -> None:
    corpus = python_reference()
    assert 300_000 < len(corpus.text) < 900_000
    assert corpus == python_reference()
    assert 'The "with" statement' in corpus.text
    # In the order of the topics' names: "assert" is the first, "yield" the last.
    assert corpus.text.index('The "assert" statement') < 10
    assert corpus.text.rindex("Yield expressions") > len(corpus.text) * 0.95


def test_tiny_shakespeare_is_fetched_once_checked_and_kept(
    home: Path, server: Address, shakespeare: str
) -> None:
    assert {offer.name: offer.ready for offer in corpora()}["tiny-shakespeare"] is False
    server.answer = shakespeare.encode()
    fetched = tiny_shakespeare()
    assert (fetched.text, fetched.sha256) == (shakespeare, module.TINY_SHAKESPEARE_SHA256)
    assert [file.relative_to(home).as_posix() for file in home.rglob("*.*")] == [CACHED]
    assert {offer.name: offer.ready for offer in corpora()}["tiny-shakespeare"] is True
    assert tiny_shakespeare(fetch=False) == tiny_shakespeare() == fetched
    assert server.asked == 1


def test_a_damaged_copy_is_fetched_again(home: Path, server: Address, shakespeare: str) -> None:
    (home / "corpora").mkdir(parents=True)
    (home / CACHED).write_text("Half a pl")
    with pytest.raises(CorpusUnavailableError, match="it may not be fetched"):
        tiny_shakespeare(fetch=False)
    server.answer = shakespeare.encode()
    assert tiny_shakespeare().text == (home / CACHED).read_text() == shakespeare


def test_a_cache_that_cannot_be_written_does_not_matter(
    home: Path, server: Address, shakespeare: str
) -> None:
    home.write_text("a file where the folder should be")
    server.answer = shakespeare.encode()
    assert tiny_shakespeare().text == shakespeare


@pytest.mark.parametrize("answer", [b"", b"<html>Please sign in</html>", b"x" * 2_000_000])
def test_another_text_at_the_address_is_refused_and_not_kept(
    home: Path, server: Address, answer: bytes
) -> None:
    server.answer = answer
    with pytest.raises(CorpusUnavailableError, match="is not that text.*python-reference"):
        tiny_shakespeare()
    assert server.asked == 1
    assert not (home / CACHED).exists()


def test_offline_it_says_so_and_names_the_others(home: Path, server: Address) -> None:
    server.server_close()
    with pytest.raises(
        CorpusUnavailableError,
        match="cannot be fetched.*offline.*from http.*put it here "
        "as.*python-reference.*yours.*generates",
    ):
        tiny_shakespeare(timeout=2)
    assert not home.exists()


def test_without_a_setting_the_cache_is_in_the_users_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GPTVIZ_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(CorpusUnavailableError) as caught:
        tiny_shakespeare(fetch=False)
    assert f"{tmp_path}/.cache/gptviz/corpora" in str(caught.value)


def test_the_public_address_is_https() -> None:
    assert module.TINY_SHAKESPEARE_ADDRESS.startswith("https://raw.githubusercontent.com/")


def test_every_corpus_offered_as_ready_opens_without_a_network(home: Path) -> None:
    offers = {offer.name: offer for offer in corpora()}
    assert list(offers) == ["python-reference", "tiny-shakespeare"]
    assert all("\n" not in offer.description for offer in offers.values())
    assert [offer.open().name for offer in offers.values() if offer.ready] == ["python-reference"]
    assert not home.exists()
