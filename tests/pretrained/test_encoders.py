"""BERT and DistilBERT: their old files, the names of their labels, and the same ids from the same
text as in `transformers`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import gptviz
from gptviz.__main__ import main
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at
from tests.command_line import Capture, answered
from tests.pretrained.test_families import (
    CLASSIFIERS,
    CONTEXT,
    MODELS,
    VOCAB,
    close,
    judge,
    opened,
    theirs,
    words,
)


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("has_stem", [True, False])
@pytest.mark.parametrize("kind", CLASSIFIERS)
@torch.inference_mode()
def test_old_files_call_the_gain_and_bias_of_a_norm_gamma_and_beta(
    kind: str, has_stem: bool, file: str, tmp_path: Path
) -> None:
    """Some leave out the first word of the encoder's names, too; `transformers` opens them as the
    same model.
    """
    model = theirs(kind, MODELS[kind][0])
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    tensors = {}
    for name, tensor in model.state_dict().items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        tensors[old if has_stem else old.removeprefix(f"{kind}.")] = tensor.clone()
    assert any(name.endswith("gamma") for name in tensors)
    if file == "pytorch_model.bin":
        torch.save(tensors, tmp_path / file)
    else:
        save_file(tensors, tmp_path / file, metadata={"format": "pt"})
    ids = words(9)
    close(judge(kind).from_pretrained(tmp_path).eval()(ids).logits, model(ids).logits)
    close(opened(tmp_path)(ids), model(ids).logits)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_have_the_names_that_the_config_gives_them(kind: str, tmp_path: Path) -> None:
    named, unnamed = (theirs(kind, sizes) for sizes in MODELS[kind])
    named.save_pretrained(tmp_path / "named")
    unnamed.save_pretrained(tmp_path / "unnamed")
    assert source_at(tmp_path / "named").describe_model().labels == ("dull", "fair", "good")
    assert source_at(tmp_path / "unnamed").describe_model().labels == ("LABEL_0", "LABEL_1")


PIECES = "the film was good bad un ##believ ##able . , ! é ##s 映 画"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES.split()]
TEXTS = [
    "The film was good.",
    "the films, the FILM: unbelievable!",
    "café é 映画 \t bad",
    "an unheard thing was good",
    "",
    "the film was bad, " * 20,
]


def read_by_transformers(folder: Path, text: str, **settings: Any) -> list[int]:
    transformers = pytest.importorskip("transformers")
    ids: list[int] = transformers.AutoTokenizer.from_pretrained(folder)(text, **settings)[
        "input_ids"
    ]
    return ids


def described(folder: Path, kind: str = "bert", **settings: Any) -> Path:
    """A folder with a model of `transformers`, and WordPiece's vocabulary in its old form,
    vocab.txt.
    """
    theirs(kind, MODELS[kind][0]).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer"} | settings)
    )
    return folder


@pytest.mark.parametrize(
    "settings",
    [{}, {"do_lower_case": False}, {"strip_accents": False}],
    ids=["small", "large", "accents"],
)
@pytest.mark.parametrize("is_new", [True, False], ids=["tokenizer.json", "vocab.txt"])
def test_a_text_is_read_as_transformers_reads_it_and_cut_where_it_cuts(
    is_new: bool, settings: dict[str, Any], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = described(tmp_path / "old", **settings)
    if is_new:
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "new")
        theirs("bert", MODELS["bert"][0]).save_pretrained(tmp_path / "new")
        folder = tmp_path / "new"
        assert not (folder / "vocab.txt").exists()
    tokenizer = source_at(folder).describe_model().tokenizer
    assert tokenizer.vocab_size == VOCAB
    for text in TEXTS:
        found = tokenizer.encode(text).ids
        assert found == read_by_transformers(folder, text) == tokenizer.encode_ids(text).tolist()
        cut = read_by_transformers(folder, text, truncation=True, max_length=CONTEXT)
        assert tokenizer.beginning(found, CONTEXT) == cut


def test_a_word_that_the_vocabulary_lacks_is_said_with_what_is_read_instead(tmp_path: Path) -> None:
    found = source_at(described(tmp_path)).describe_model().tokenizer.encode("an unheard film")
    assert [(one.position, one.character, one.instead) for one in found.unknown] == [
        (1, "an", "[UNK]"),
        (2, "unheard", "[UNK]"),
    ]


@pytest.mark.parametrize(
    "content", ["", "the\nthe\n[UNK]\n[CLS]\n[SEP]\n", "[PAD]\n[UNK]\n[CLS]\n"]
)
def test_a_vocabulary_without_its_special_tokens_is_refused(content: str, tmp_path: Path) -> None:
    (described(tmp_path) / "vocab.txt").write_text(content)
    with pytest.raises(ImportRefusedError, match=r"vocab\.txt"):
        source_at(tmp_path).describe_model()


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_an_imported_classifier_gives_the_probabilities_of_transformers(
    kind: str, home: Path, tmp_path: Path, capsys: Capture
) -> None:
    model = theirs(kind, MODELS[kind][0])
    text = "The film was unbelievable, the films was bad"
    described(tmp_path / "named", kind)
    assert main(["import", str(tmp_path / "named"), "--name", "judge"]) == 0
    capsys.readouterr()
    found = answered(capsys, "classify", "judge", "--text", text)
    ids = torch.tensor([read_by_transformers(tmp_path / "named", text)])
    with torch.inference_mode():
        expected = model(ids).logits[0].double().softmax(-1).tolist()
    assert list(found["probabilities"]) == ["dull", "fair", "good"]
    assert list(found["probabilities"].values()) == pytest.approx(expected, abs=1e-4)
    lm = gptviz.load("judge")
    texts = [text, "bad", "the film " * 50]
    for row, one in zip(lm.probabilities(texts), texts, strict=True):
        assert list(lm.classify(one).values()) == pytest.approx(row.tolist(), abs=1e-5)
    assert len(lm.seen(lm.encode(texts[2]))) == CONTEXT
    with pytest.raises(
        ValueError, match="the text to classify has nothing that this model can read"
    ):
        lm.classify(" ")
