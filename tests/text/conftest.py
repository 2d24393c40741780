"""What the tests of `gptviz.text` share: the public data files, which lie beside the repository and
not in it.
"""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[2].parent / "shared/data"


def _data_file(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not in {DATA}: this check needs that public file")
    return DATA / name


@pytest.fixture(scope="session")
def shakespeare() -> str:
    return _data_file("tinyshakespeare.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def gpt2_files() -> tuple[Path, Path]:
    return _data_file("gpt2-encoder.json"), _data_file("gpt2-vocab.bpe")
