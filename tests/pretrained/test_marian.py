"""Marian writes the answers that `transformers` writes, and scores them as it does."""

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
from gptviz.language_model.core import decode_answer, special_tokenizer
from gptviz.runs import checkpoints
from tests.command_line import Capture, printed
from tests.pretrained.test_families import CONTEXT, END, MODELS, PADDING, ours, theirs, words
from tests.text import marian_vocabulary

PADDED = PADDING["marian"]


@torch.no_grad()
def ending(seed: int, bias: float, **sizes: Any) -> Any:
    """A translator whose answers differ, and of which some end: large matrices, small biases, and a
    `bias` towards the end.
    """
    model = theirs("marian", MODELS["marian"][0] | sizes, seed)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter *= 0.1
        elif not any(part in name for part in ("norm", "embed_positions", "shared")):
            parameter *= 3.0
    model.final_logits_bias *= 0.1
    model.final_logits_bias[0, END] += bias
    return model


def generated(model: Any, source: Tensor, **settings: Any) -> Any:
    """What `transformers` writes, never the padding, which answers begin with."""
    given = {
        "max_length": CONTEXT,
        "bad_words_ids": [[PADDED]],
        "return_dict_in_generate": True,
        "output_scores": True,
    }
    return model.generate(
        source, attention_mask=(source != PADDED).long(), do_sample=False, **given | settings
    )


@torch.inference_mode()
def test_greedy_answers_are_those_of_transformers_and_hold_no_padding(tmp_path: Path) -> None:
    ended = set()
    would_pad = 0
    for seed in range(6):
        model = ending(seed, 2.0)
        model.final_logits_bias[0, PADDED] += 4.0  # it would be written if it could
        mine = ours(model, tmp_path / str(seed))
        source = words(7, batch=4, seed=seed)
        source[1, 3:] = source[2, 5:] = PADDED
        answers = decode_greedily(mine, source, PADDED, END, CONTEXT - 1)
        expected = generated(model, source, num_beams=1).sequences[:, 1:]
        for answer, row in zip(answers.tolist(), expected.tolist(), strict=True):
            until = [*answer, END].index(END) + 1
            assert answer[:until] == row[:until]
            assert PADDED not in answer
            ended.add(until)
        start = torch.full((4, 1), PADDED)
        would_pad += int((mine(start, source).argmax(-1) == PADDED).sum())
    assert len(ended) > 2
    assert would_pad > 3


@torch.inference_mode()
def test_beams_score_an_answer_as_transformers_does(tmp_path: Path) -> None:
    compared = 0
    for seed in range(6):
        model = ending(seed, 1.0)
        mine = ours(model, tmp_path / str(seed))
        source = words(6, batch=1, seed=seed)
        settings = {
            "num_beams": 4,
            "num_return_sequences": 4,
            "length_penalty": 0.0,
            "renormalize_logits": True,
        }
        found = generated(model, source, **settings)
        scores = {}
        for row, score in zip(
            found.sequences[:, 1:].tolist(), found.sequences_scores.tolist(), strict=True
        ):
            if END in row:
                scores[tuple(row[: row.index(END)])] = score
        for one in beam_search(mine, source[0], PADDED, END, 4, CONTEXT - 1).finished:
            if one.ended and one.ids in scores:
                assert one.total == pytest.approx(scores[one.ids], abs=1e-4)
                compared += 1
    assert compared >= 6


TEXTS = (
    "the small frog sleeps",
    "a bird 😀 sings",
    ">>deu<< I see the frog.",
    "the bird sings, a small song",
)


def translator(folder: Path, unused: int = 0) -> Any:
    """A translator of `transformers` in a folder with its tokenizer, of whose answers some end.

    Its embedding has so many `unused` rows after those of its pieces, and its settings name its
    languages.
    """
    n = len(marian_vocabulary.write(folder))
    languages = {"source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", **languages})
    )
    special = {"decoder_start_token_id": n - 1, "pad_token_id": n - 1, "eos_token_id": END}
    model = ending(5, 2.0, vocab_size=n + unused, **special)
    model.save_pretrained(folder)
    return model


def test_an_imported_translator_writes_what_transformers_writes(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "named"
    folder.mkdir()
    model = translator(folder)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    assert main(["import", str(folder), "--name", "translator"]) == 0
    for text in TEXTS:
        found = json.loads(printed(capsys, "generate", "translator", "--prompt", text, "--json")[0])
        batch = tokenizer([text], return_tensors="pt")
        padding = tokenizer.pad_token_id
        with torch.inference_mode():
            ids = model.generate(
                **batch,
                do_sample=False,
                num_beams=1,
                max_length=CONTEXT + 1,
                bad_words_ids=[[padding]],
            )[0, 1:]
        expected = ids[: ids.tolist().index(END)] if END in ids else ids
        assert found["tokens"] == expected.tolist()[:CONTEXT]
        assert found["text"] == tokenizer.decode(found["tokens"], skip_special_tokens=True)
    lm = gptviz.load("translator")
    trace = lm.trace("the frog", target="der Frosch")
    assert trace["blocks.0.cross_attention.pattern"].shape[-1] == len(
        tokenizer("the frog")["input_ids"]
    )
    assert trace["logits"].shape[1] == len(tokenizer(text_target="der Frosch")["input_ids"])


def test_an_exported_translator_writes_there_what_it_writes_here(
    home: Path, tmp_path: Path
) -> None:
    """Greedily; and of a search by beams, an answer has the same score. Neither is told anything:
    the files say it all.
    """
    transformers, (given, made) = (
        pytest.importorskip("transformers"),
        (tmp_path / "given", tmp_path / "made"),
    )
    given.mkdir()
    model = translator(given, unused=8)
    tokenizer = transformers.MarianTokenizer.from_pretrained(given)
    assert main(["import", str(given), "--name", "translator"]) == 0
    assert (
        "The last 8 of its" in checkpoints.read_card(home / "checkpoints" / "translator").notes[0]
    )
    assert main(["export", "translator", "--format", "transformers", "--out", str(made)]) == 0
    there, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        made, output_loading_info=True
    )
    assert not any(report.values()), report
    source = words(9)
    answer = words(12, seed=1)
    with torch.inference_mode():
        logits = [each(source, decoder_input_ids=answer).logits for each in (there, model)]
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-3)  # its matrices are large

    reader = transformers.AutoTokenizer.from_pretrained(made)
    assert (reader.source_lang, reader.target_lang) == ("en", "de")
    lm = gptviz.load("translator")
    lengths = set()
    compared = 0
    for text in TEXTS:
        batch = reader([text], return_tensors="pt")
        assert (
            batch["input_ids"].tolist()
            == tokenizer([text], return_tensors="pt")["input_ids"].tolist()
        )
        assert reader(text_target=text)["input_ids"] == tokenizer(text_target=text)["input_ids"]
        ids = there.generate(**batch)[0, 1:].tolist()
        own, ended = decode_answer(lm, text)
        mine = [*own, END] if ended else own
        assert ids == mine
        assert max(ids) < min(special_tokenizer(lm).unused_ids)
        assert reader.decode(ids, skip_special_tokens=True) == tokenizer.decode(
            mine, skip_special_tokens=True
        )
        lengths.add(len(ids))
        asked = {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.0}
        found = there.generate(**batch, **asked, output_scores=True, return_dict_in_generate=True)
        beams = lm.beams(text, 4).finished
        totals = {(*one.ids, END) if one.ended else one.ids: one.total for one in beams}
        for row, score in zip(
            found.sequences[:, 1:].tolist(), found.sequences_scores.tolist(), strict=True
        ):
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
    assert (again.tokenizer.vocab_size, again.card.languages) == (
        model.config.vocab_size,
        ("en", "de"),
    )
