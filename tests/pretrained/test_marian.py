"""Marian computes what `transformers` computes from the same weights, and writes the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.__main__ import main
from gptviz.generate.decoding import beam_search, decode_greedily
from gptviz.model import KVCache, Record, Transformer
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import filled, source_at
from gptviz.runs import checkpoints
from tests.text import marian_vocabulary
from tests.tiny import some_ids

VOCAB, CONTEXT = 31, 24
END, PADDING = 0, VOCAB - 1
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": CONTEXT,
    "decoder_start_token_id": PADDING,
    "pad_token_id": PADDING,
    "eos_token_id": END,
    "forced_eos_token_id": None,
    "scale_embedding": True,
    "activation_function": "swish",
}
# Models that differ in an axis of our config.
MODELS = {"scaled": SIZES, "unscaled": SIZES | {"scale_embedding": False, "activation_function": "relu"}}


@torch.no_grad()
def theirs(seed: int = 0, **sizes: Any) -> Any:
    """A translator of `transformers` whose every weight is random, and the bias of its logits too."""
    transformers = pytest.importorskip("transformers")
    config = transformers.MarianConfig(**SIZES | sizes)
    config._attn_implementation = "eager"
    model = transformers.MarianMTModel(config).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            gain = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.normal_(gain, 0.3, generator=generator)
    model.final_logits_bias.normal_(0.0, 0.5, generator=generator)
    return model


@torch.no_grad()
def ending(seed: int, bias: float, **sizes: Any) -> Any:
    """A translator whose answers differ, and of which some end: large matrices, small biases, and a `bias` towards the end."""
    model = theirs(seed, **sizes)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter *= 0.1
        elif not any(part in name for part in ("norm", "embed_positions", "shared")):
            parameter *= 3.0
    model.final_logits_bias *= 0.1
    model.final_logits_bias[0, END] += bias
    return model


def ours(model: Any, folder: Path) -> Transformer:
    """The model that `transformers` saved, opened by us."""
    model.save_pretrained(folder)
    source = source_at(folder)
    return filled(source, source.opened().config).eval()


def close(mine: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def words(length: int, batch: int = 2, seed: int = 0) -> Tensor:
    """Ids that are neither the end nor padding."""
    return some_ids(length, batch, VOCAB - 2, seed) + 1


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_logits_patterns_and_hidden_states_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(**MODELS[name])
    mine, source, written = ours(model, tmp_path), words(9), words(12, seed=1)
    written[:, 0] = PADDING  # what an answer begins with
    source[1, 6:] = PADDING
    given = model(
        source,
        attention_mask=(source != PADDING).long(),
        decoder_input_ids=written,
        output_attentions=True,
        output_hidden_states=True,
    )
    record = Record()
    close(mine(written, source, tap=record), given.logits)
    for index in range(3):
        close(record.values[f"blocks.{index}.attention.pattern"], given.decoder_attentions[index])
        close(record.values[f"blocks.{index}.cross_attention.pattern"], given.cross_attentions[index])
        close(record.values[f"blocks.{index}.resid_pre"], given.decoder_hidden_states[index])
    close(record.values["blocks.2.resid_post"], given.decoder_hidden_states[-1])
    for index in range(2):
        close(record.values[f"encoder.blocks.{index}.attention.pattern"], given.encoder_attentions[index])
        close(record.values[f"encoder.blocks.{index}.resid_pre"], given.encoder_hidden_states[index])
    close(record.values["memory"], given.encoder_last_hidden_state)


@torch.inference_mode()
def test_token_by_token_with_a_cache_a_batch_has_the_same_logits(tmp_path: Path) -> None:
    model = theirs()
    mine, source, written = ours(model, tmp_path), words(9), words(12, seed=1)
    cache, memory = KVCache(mine.config, batch=2), mine.encode(source)
    logits = torch.cat([mine(written[:, at : at + 1], memory=memory, cache=cache) for at in range(12)], dim=1)
    close(logits, model(source, decoder_input_ids=written).logits)


def generated(model: Any, source: Tensor, **settings: Any) -> Any:
    """What `transformers` writes, never the padding, which answers begin with."""
    given = {"max_length": CONTEXT, "bad_words_ids": [[PADDING]], "return_dict_in_generate": True, "output_scores": True}
    return model.generate(source, attention_mask=(source != PADDING).long(), do_sample=False, **given | settings)


@torch.inference_mode()
def test_greedy_answers_are_those_of_transformers_and_hold_no_padding(tmp_path: Path) -> None:
    ended, would_pad = set(), 0
    for seed in range(6):
        model = ending(seed, 2.0)
        model.final_logits_bias[0, PADDING] += 4.0  # it would be written if it could
        mine, source = ours(model, tmp_path / str(seed)), words(7, batch=4, seed=seed)
        source[1, 3:] = source[2, 5:] = PADDING
        answers = decode_greedily(mine, source, PADDING, END, CONTEXT - 1)
        expected = generated(model, source, num_beams=1).sequences[:, 1:]
        for answer, row in zip(answers.tolist(), expected.tolist(), strict=True):
            until = [*answer, END].index(END) + 1
            assert answer[:until] == row[:until]
            assert PADDING not in answer
            ended.add(until)
        start = torch.full((4, 1), PADDING)
        would_pad += int((mine(start, source).argmax(-1) == PADDING).sum())
    assert len(ended) > 2
    assert would_pad > 3


@torch.inference_mode()
def test_beams_score_an_answer_as_transformers_does(tmp_path: Path) -> None:
    compared = 0
    for seed in range(6):
        model = ending(seed, 1.0)
        mine, source = ours(model, tmp_path / str(seed)), words(6, batch=1, seed=seed)
        settings = {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.0, "renormalize_logits": True}
        found = generated(model, source, **settings)
        scores = {}
        for row, score in zip(found.sequences[:, 1:].tolist(), found.sequences_scores.tolist(), strict=True):
            if END in row:
                scores[tuple(row[: row.index(END)])] = score
        for one in beam_search(mine, source[0], PADDING, END, 4, CONTEXT - 1).finished:
            if one.ended and one.ids in scores:
                assert one.total == pytest.approx(scores[one.ids], abs=1e-4)
                compared += 1
    assert compared >= 6


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"architectures": ["MarianModel"]}, "architecture is MarianModel; of Marian models gptviz opens MarianMTModel"),
        ({"decoder_ffn_dim": 20}, "decoder_ffn_dim is 20"),
        ({"share_encoder_decoder_embeddings": False}, "sources and answers have a vocabulary each"),
        ({"normalize_before": True}, "normalize_before is True"),
        ({"decoder_start_token_id": 3}, "decoder_start_token_id is 3"),
        ({"encoder_layers": 0}, "encoder_layers is 0"),
    ],
)
def test_what_has_no_part_is_refused_and_named(fields: dict[str, Any], named: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "marian"} | SIZES | fields))
    with pytest.raises(ImportRefusedError, match=named):
        source_at(tmp_path).opened()


TEXTS = ("the small frog sleeps", "a bird 😀 sings", ">>deu<< I see the frog.", "the bird sings, a small song")


def translator(folder: Path, unused: int = 0) -> Any:
    """A translator of `transformers` in a folder with its tokenizer, of whose answers some end.

    Its embedding has so many `unused` rows after those of its pieces, and its settings name its languages.
    """
    n = len(marian_vocabulary.write(folder))
    languages = {"source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer", **languages}))
    special = {"decoder_start_token_id": n - 1, "pad_token_id": n - 1, "eos_token_id": END}
    model = ending(5, 2.0, vocab_size=n + unused, **special)
    model.save_pretrained(folder)
    return model


def test_an_imported_translator_writes_what_transformers_writes(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers, folder = pytest.importorskip("transformers"), tmp_path / "named"
    folder.mkdir()
    model = translator(folder)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    assert main(["import", str(folder), "--name", "translator"]) == 0
    for text in TEXTS:
        capsys.readouterr()
        assert main(["generate", "translator", "--prompt", text, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        batch = tokenizer([text], return_tensors="pt")
        padding = tokenizer.pad_token_id
        with torch.inference_mode():
            ids = model.generate(**batch, do_sample=False, num_beams=1, max_length=CONTEXT + 1, bad_words_ids=[[padding]])[0, 1:]
        expected = ids[: ids.tolist().index(END)] if END in ids else ids
        assert found["tokens"] == expected.tolist()[:CONTEXT]
        assert found["text"] == tokenizer.decode(found["tokens"], skip_special_tokens=True)
    lm = gptviz.load("translator")
    trace = lm.trace("the frog", target="der Frosch")
    assert trace["blocks.0.cross_attention.pattern"].shape[-1] == len(tokenizer("the frog")["input_ids"])
    assert trace["logits"].shape[1] == len(tokenizer(text_target="der Frosch")["input_ids"])


def test_an_exported_translator_writes_there_what_it_writes_here(home: Path, tmp_path: Path) -> None:
    """Greedily; and of a search by beams, an answer has the same score. Neither is told anything: the files say it all."""
    transformers, (given, made) = pytest.importorskip("transformers"), (tmp_path / "given", tmp_path / "made")
    given.mkdir()
    model = translator(given, unused=8)
    tokenizer = transformers.MarianTokenizer.from_pretrained(given)
    assert main(["import", str(given), "--name", "translator"]) == 0
    assert "The last 8 of its" in checkpoints.read_card(home / "checkpoints" / "translator").notes[0]
    assert main(["export", "translator", "--format", "transformers", "--to", str(made)]) == 0
    there, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(made, output_loading_info=True)
    assert not any(report.values()), report
    source, answer = words(9), words(12, seed=1)
    with torch.inference_mode():
        logits = [each(source, decoder_input_ids=answer).logits for each in (there, model)]
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-3)  # its matrices are large

    reader = transformers.AutoTokenizer.from_pretrained(made)
    assert (reader.source_lang, reader.target_lang) == ("en", "de")
    lm, lengths, compared = gptviz.load("translator"), set(), 0
    for text in TEXTS:
        batch = reader([text], return_tensors="pt")
        assert batch["input_ids"].tolist() == tokenizer([text], return_tensors="pt")["input_ids"].tolist()
        assert reader(text_target=text)["input_ids"] == tokenizer(text_target=text)["input_ids"]
        ids = there.generate(**batch)[0, 1:].tolist()
        own, ended = lm.decoded(text)
        mine = [*own, END] if ended else own
        assert ids == mine
        assert max(ids) < lm.special_tokens.unused_ids.start
        assert reader.decode(ids, skip_special_tokens=True) == tokenizer.decode(mine, skip_special_tokens=True)
        lengths.add(len(ids))
        asked = {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.0}
        found = there.generate(**batch, **asked, output_scores=True, return_dict_in_generate=True)
        beams = lm.beams(text, 4).finished
        totals = {(*one.ids, END) if one.ended else one.ids: one.total for one in beams}
        for row, score in zip(found.sequences[:, 1:].tolist(), found.sequences_scores.tolist(), strict=True):
            until = tuple(row[: row.index(END) + 1]) if END in row else tuple(row)
            if until in totals:
                assert score == pytest.approx(totals[until], rel=1e-4)
                compared += 1
    assert len(lengths) > 1
    assert CONTEXT in lengths  # an answer that was cut
    assert compared >= 5
    assert main(["import", str(made), "--name", "again"]) == 0
    again = gptviz.load("again")
    assert again.tokenizer.to_json() == lm.tokenizer.to_json()
    assert (again.tokenizer.vocab_size, again.card.languages) == (model.config.vocab_size, ("en", "de"))
