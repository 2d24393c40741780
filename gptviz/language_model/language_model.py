"""A language model: a trained transformer with its tokenizer, which gives texts, probabilities and
every tensor between.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gptviz.model.precision import STORED

from . import (
    changing,
    data,
    explaining,
    fitted,
    reading,
    scanning,
    steering,
    units,
    weight_circuits,
    writing,
)
from . import dictionaries as of_dictionaries
from . import notes as of_notes
from . import over_training as of_training
from .core import LoadedModel
from .old_names import find_old
from .opening import open_parts


class LanguageModel(LoadedModel):
    """A trained model that is ready to use, as `gptviz.load` returns it.

    Many methods have these settings, and say of them only what is different there:

    - prompt: the text that the model reads, the part of it that the model sees; for an
      encoder–decoder its source.
    - target: what an encoder–decoder writes; by default its own answer.
    - position: the token is guessed after the token at this position; by default the last.
    - token: the token that is guessed, as text or id; by default the likeliest. Of a classifier, a
      label.
    - against: another token, which is compared with it: its logit is taken from that of the token.
    - dictionary: the name of one that is kept; by default the first of `dictionaries`.

    They all raise `ValueError` where the prompt is empty, the model is of another kind or has no
    such part, a setting is not possible, or what they are asked for by its name or in a file is not
    there, damaged, or that of another model; and `OSError` where they need data that are not on
    this machine, or a file cannot be read, written or kept.

    Attributes:
        name: the checkpoint's name.
        model: the transformer, in evaluation mode.
        tokenizer: text to ids and back.
        card: how it was made and how good it is.
        step: the training step of the snapshot, or None for the model as it was last saved.
        precision: what was asked for when it was opened, one of
            `gptviz.model.precision.PRECISIONS`.
        edits: what is switched off or replaced in it, as texts; see `edited`.
        edit_text: the reference text of these edits, or None if they need none.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return find_old(self, name)

    # What it makes of a text.
    attention = reading.attention
    next_token = reading.next_token
    compare = reading.compare
    embeddings = reading.embeddings
    classify = reading.classify
    probabilities = reading.probabilities
    stream = reading.stream
    lens = reading.lens
    course = reading.course
    experts = reading.experts
    pieces = reading.pieces
    context_use = reading.context_use
    nearest = reading.nearest
    positions = reading.positions
    waves = reading.waves
    costs = reading.costs
    side = reading.side

    # Why it guesses what it guesses.
    attribute = explaining.attribute
    learning_step = explaining.learning_step
    backward_lens = explaining.backward_lens
    circuit = explaining.circuit
    check_circuit = explaining.check_circuit
    weight_circuit = weight_circuits.weight_circuit

    # What becomes of it without a piece, with another, or in fewer bits.
    fewer_bits = changing.fewer_bits
    swap = changing.swap
    guess = changing.guess
    losses_without = changing.losses_without
    pair = changing.pair
    patch = changing.patch
    over_prompts = changing.over_prompts
    along_strength = changing.along_strength

    # Along a direction of its stream.
    steer = steering.steer
    read_direction = steering.read_direction
    write_direction = steering.write_direction

    # What heads, neurons and features do.
    activity = units.activity
    promoted = units.promoted
    unit_set = units.unit_set
    nearest_features = units.nearest_features
    written_by = units.written_by
    head_scores = units.head_scores
    composition = units.composition
    heads = units.heads

    # Dictionaries of sparse features.
    fit_dictionary = of_dictionaries.fit_dictionary
    dictionaries = of_dictionaries.dictionaries
    dictionary = of_dictionaries.open_dictionary
    features = of_dictionaries.features
    feature_attribution = of_dictionaries.feature_attribution
    dictionary_quality = of_dictionaries.dictionary_quality
    compare_dictionaries = of_dictionaries.compare_dictionaries
    write_dictionary = of_dictionaries.write_dictionary
    read_dictionary = of_dictionaries.read_dictionary

    # What is fitted to its stream: lenses, probes, directions.
    fitted_lens = fitted.fitted_lens
    read_lens = fitted.read_lens
    write_lens = fitted.write_lens
    probe = fitted.probe
    label_direction = fitted.label_direction
    direction = fitted.direction

    # How it came about.
    over_training = of_training.over_training

    # What stands out.
    scan = scanning.scan

    # What it learned from.
    rows = data.rows
    answers = data.answers
    shares_in_data = data.shares_in_data
    data_rows = data.data_rows
    losses_of_rows = data.losses_of_rows

    # What the reader calls its units, and wrote about them.
    notes = of_notes.notes
    write_note = of_notes.write_note

    # What it writes.
    generation = writing.generation
    generate = writing.generate
    speculate = writing.speculate
    answer = writing.answer
    beams = writing.beams


def load(
    name: str | Path, device: str | None = None, step: int | None = None, precision: str = STORED
) -> LanguageModel:
    """Open a model on `device` (default: the fastest).

    A name is that of a checkpoint; else that of a model on the Hugging Face hub, such as "gpt2",
    which is imported once: from the cache of `huggingface_hub`, or fetched with a bar that shows
    how far it is. A `Path` leads to a checkpoint, or to a model of another program (a folder with
    config.json and weights, a .gguf file, nanoGPT's ckpt.pt), which is opened where it is.

    With `step`, the snapshot after that many steps of training. There is a warning if `name` is a
    model of the user's that hides one which came with gptviz.

    `precision` is what weights are multiplied in: "float32", "bfloat16" or "float16"; "stored" is
    what the file has where this machine multiplies in it, else float32. In memory a weight has as
    many bytes as in its file, or fewer if these are enough. See `gptviz.model.precision`.

    Raises:
        CheckpointError: there is no such checkpoint or snapshot, or it cannot be opened; the
            message says why and what to do.
        TypeError: `name` is neither a text nor a `Path`.
        ValueError: there is no such device or precision.
    """
    return LanguageModel(*open_parts(name, device, step, precision))
