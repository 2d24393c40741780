"""BERT and DistilBERT compute what `transformers` computes from the same weights, and read the same ids from the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import gptviz
from gptviz.__main__ import main
from gptviz.model import Record, Transformer
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import filled, source_at
from tests.tiny import some_ids

VOCAB, CONTEXT, PADDING = 31, 24, 0
LABELS = {0: "dull", 1: "fair", 2: "good"}
BERT = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": CONTEXT,
}
DISTILBERT = {"dim": 24, "n_layers": 3, "n_heads": 2, "hidden_dim": 40, "max_position_embeddings": CONTEXT}
# By family, models of it that differ in an axis of our config.
CLASSIFIERS: dict[str, list[dict[str, Any]]] = {
    "bert": [BERT | {"id2label": LABELS}, BERT | {"hidden_act": "relu", "layer_norm_eps": 0.1}],
    "distilbert": [DISTILBERT | {"id2label": LABELS}, DISTILBERT | {"activation": "relu", "sinusoidal_pos_embds": True}],
}
CASES = [pytest.param(kind, case, id=f"{kind}-{i}") for kind, cases in CLASSIFIERS.items() for i, case in enumerate(cases)]


@torch.no_grad()
def scramble(model: Any) -> Any:
    """Every weight random, so that a part that is mixed up or left out shows."""
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        gain = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        parameter.normal_(gain, 0.3, generator=generator)
    return model.eval()


def theirs(kind: str, sizes: dict[str, Any]) -> Any:
    """A classifier of `transformers` whose every weight is random."""
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind, **{"vocab_size": VOCAB} | sizes)
    config._attn_implementation = "eager"
    return scramble(transformers.AutoModelForSequenceClassification.from_config(config))


def ours(model: Any, folder: Path) -> Transformer:
    """The model that `transformers` saved, opened by us."""
    model.save_pretrained(folder)
    source = source_at(folder)
    return filled(source, source.opened().config).eval()


def close(mine: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "sizes"), CASES)
@torch.inference_mode()
def test_logits_patterns_and_hidden_states_are_those_of_transformers(kind: str, sizes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(kind, sizes)
    mine, ids = ours(model, tmp_path), some_ids(20, vocab=VOCAB - 1) + 1
    given = model(ids, output_attentions=True, output_hidden_states=True)
    record = Record()
    close(mine(ids, tap=record), given.logits)
    assert len(given.attentions) == len(given.hidden_states) - 1 == 3
    for index, pattern in enumerate(given.attentions):
        close(record.values[f"blocks.{index}.attention.pattern"], pattern)
        close(record.values[f"blocks.{index}.resid_pre"], given.hidden_states[index])
    close(record.values["blocks.2.resid_post"], given.hidden_states[-1])


@pytest.mark.parametrize(("kind", "sizes"), CASES)
@torch.inference_mode()
def test_a_padded_batch_has_the_logits_that_transformers_gives_under_its_mask(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(kind, sizes)
    mine, ids = ours(model, tmp_path), some_ids(20, batch=3, vocab=VOCAB - 1) + 1
    ids[1, 7:] = ids[2, 1:] = PADDING
    given = model(ids, attention_mask=(ids != PADDING).long())
    close(mine(ids), given.logits)
    close(mine(ids[1:2, :7]), given.logits[1:2])


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("has_stem", [True, False])
@pytest.mark.parametrize("kind", CLASSIFIERS)
@torch.inference_mode()
def test_old_files_call_the_gain_and_bias_of_a_norm_gamma_and_beta(kind: str, has_stem: bool, file: str, tmp_path: Path) -> None:
    """Some leave out the first word of the encoder's names, too; `transformers` opens them as the same model."""
    transformers = pytest.importorskip("transformers")
    model = theirs(kind, CLASSIFIERS[kind][0])
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    tensors = {}
    for name, tensor in model.state_dict().items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[old if has_stem else old.removeprefix(f"{kind}.")] = tensor.clone()
    assert any(name.endswith("gamma") for name in tensors)
    if file == "pytorch_model.bin":
        torch.save(tensors, tmp_path / file)
    else:
        save_file(tensors, tmp_path / file, metadata={"format": "pt"})
    there = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    source, ids = source_at(tmp_path), some_ids(9, vocab=VOCAB - 1) + 1
    logits = filled(source, source.opened().config).eval()(ids)
    close(there(ids).logits, model(ids).logits)
    close(logits, model(ids).logits)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_have_the_names_that_the_config_gives_them(kind: str, tmp_path: Path) -> None:
    named, unnamed = (theirs(kind, sizes) for sizes in CLASSIFIERS[kind])
    named.save_pretrained(tmp_path / "named")
    unnamed.save_pretrained(tmp_path / "unnamed")
    assert source_at(tmp_path / "named").opened().labels == ("dull", "fair", "good")
    assert source_at(tmp_path / "unnamed").opened().labels == ("LABEL_0", "LABEL_1")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "architecture is BertForMaskedLM; .* BertForSequenceClassification"),
        ({"architectures": ["BertModel"]}, "architecture is BertModel"),
        ({"model_type": "distilbert", "architectures": ["DistilBertModel"]}, "DistilBertForSequenceClassification"),
        ({"id2label": {"0": "one"}}, "a number and no label"),
        ({"id2label": {"0": "one", "2": "three"}}, "id2label is .* it must name the labels 0, 1, 2"),
        ({"id2label": ["one", "two"]}, "id2label is"),
        ({"problem_type": "multi_label_classification"}, "problem_type is 'multi_label_classification'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"pad_token_id": "x"}, "padding is 'x'"),
    ],
)
def test_what_gives_no_label_to_a_text_is_refused_and_named(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **BERT} | fields))
    with pytest.raises(ImportRefusedError, match=words) as refused:
        source_at(tmp_path).opened()
    assert "\n" not in str(refused.value)


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
    ids: list[int] = transformers.AutoTokenizer.from_pretrained(folder)(text, **settings)["input_ids"]
    return ids


def described(folder: Path, kind: str = "bert", **settings: Any) -> Path:
    """A folder with a model of `transformers`, and WordPiece's vocabulary in its old form, vocab.txt."""
    theirs(kind, CLASSIFIERS[kind][0]).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"} | settings))
    return folder


@pytest.mark.parametrize("settings", [{}, {"do_lower_case": False}, {"strip_accents": False}], ids=["small", "large", "accents"])
@pytest.mark.parametrize("is_new", [True, False], ids=["tokenizer.json", "vocab.txt"])
def test_a_text_is_read_as_transformers_reads_it_and_cut_where_it_cuts(
    is_new: bool, settings: dict[str, Any], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = described(tmp_path / "old", **settings)
    if is_new:
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "new")
        theirs("bert", CLASSIFIERS["bert"][0]).save_pretrained(tmp_path / "new")
        folder = tmp_path / "new"
        assert not (folder / "vocab.txt").exists()
    tokenizer = source_at(folder).opened().tokenizer
    assert tokenizer.vocab_size == VOCAB
    for text in TEXTS:
        found = tokenizer.encode(text).ids
        assert found == read_by_transformers(folder, text) == tokenizer.encode_ids(text).tolist()
        cut = read_by_transformers(folder, text, truncation=True, max_length=CONTEXT)
        assert tokenizer.beginning(found, CONTEXT) == cut


def test_a_word_that_the_vocabulary_lacks_is_said_with_what_is_read_instead(tmp_path: Path) -> None:
    found = source_at(described(tmp_path)).opened().tokenizer.encode("an unheard film")
    assert [(one.position, one.character, one.instead) for one in found.unknown] == [(1, "an", "[UNK]"), (2, "unheard", "[UNK]")]


@pytest.mark.parametrize("content", ["", "the\nthe\n[UNK]\n[CLS]\n[SEP]\n", "[PAD]\n[UNK]\n[CLS]\n"])
def test_a_vocabulary_without_its_special_tokens_is_refused(content: str, tmp_path: Path) -> None:
    (described(tmp_path) / "vocab.txt").write_text(content)
    with pytest.raises(ImportRefusedError, match=r"vocab\.txt"):
        source_at(tmp_path).opened()


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_an_imported_classifier_gives_the_probabilities_of_transformers(
    kind: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, text = theirs(kind, CLASSIFIERS[kind][0]), "The film was unbelievable, the films was bad"
    described(tmp_path / "named", kind)
    assert main(["import", str(tmp_path / "named"), "--name", "judge"]) == 0
    capsys.readouterr()
    assert main(["classify", "judge", "--text", text, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    ids = torch.tensor([read_by_transformers(tmp_path / "named", text)])
    with torch.inference_mode():
        expected = model(ids).logits[0].double().softmax(-1).tolist()
    assert list(found["probabilities"]) == ["dull", "fair", "good"]
    assert list(found["probabilities"].values()) == pytest.approx(expected, abs=1e-4)
    lm, texts = gptviz.load("judge"), [text, "bad", "the film " * 50]
    for row, one in zip(lm.probabilities(texts), texts, strict=True):
        assert list(lm.classify(one).values()) == pytest.approx(row.tolist(), abs=1e-5)
    assert len(lm.seen(lm.encode(texts[2]))) == CONTEXT
    with pytest.raises(ValueError, match="the text to classify has nothing that this model can read"):
        lm.classify(" ")
