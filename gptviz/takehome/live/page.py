"""The files of the page “Try it”: the page itself, and for each model a script that hands over the
files of its checkpoint.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from gptviz._version import __version__
from gptviz.components.kit import modules
from gptviz.language_model import load
from gptviz.language_model.core import end_tokens
from gptviz.language_model.writing import sequence_length
from gptviz.model import Config
from gptviz.runs import checkpoints
from gptviz.settings.fields import field_infos
from gptviz.text import CharTokenizer
from gptviz.twin import writing

from ..page_file import escape_data, fill_template, hand_over
from . import HERE, computed_values, missing_feature

NAME = "try"
MODELS = "models"
APP = "http://localhost:8501"  # where Streamlit puts the app of one's own machine
# The views of the page, by the page of the app that shows the same: their folders in
# `gptviz.components`.
VIEWS = {
    "next_token": "sampling_ledger",
    "attention": "attention_explorer",
    "lens": "lens_grid",
    "generate": "generation_tree",
}
# The models that a browser trains: what their sizes have in common, and the rest of each.
TRAINED = json.loads((HERE / "trained.json").read_text(encoding="utf-8"))
TEXTS = ("names", "words")
# What a browser reads of the description of a field.
_OF_FIELDS = ("kind", "optional", "low", "high", "low_excluded", "high_excluded", "choices")
SCRIPTS = ("token_strip", *VIEWS.values())
# The keys of an address that the page reads, itself or by its views: an address with any other has
# a state that it does not show.
_KEYS = {
    *(
        "model",
        "prompt",
        "position",
        "temperature",
        "top_k",
        "top_p",
        "seed",
        "tokens",
        "log",
        "block",
        "head",
        "heads",
        "show",
        "step",
    ),
    *("direction", "query", "key", "sort", "least", "layer", "colour", "words", "attended"),
}


@dataclass(frozen=True)
class LivePage:
    """What the page shows."""

    #: the first prompt of each model, the first model first; those that a browser cannot compute
    #: are named on the page
    prompts: Mapping[str, str]
    titles: Mapping[str, str]  #: of each page in `VIEWS`
    captions: Mapping[str, str]  #: for each page in `VIEWS` a sentence above its view
    usual: str  #: the model that a page of the app is about where its address names none

    @cached_property
    def missing_features(self) -> dict[str, str]:
        """The models that a browser cannot compute, and what they lack."""
        return {
            name: found
            for name in self.prompts
            if (found := missing_feature(checkpoints.find(name)))
        }

    def address(self, page: str, query: Mapping[str, str]) -> str:
        """The address, as seen from a file beside it, at which it shows what a page of the app
        shows; empty where it does not.
        """
        model = query.get("model", self.usual)
        if (
            page not in VIEWS
            or model not in self.prompts
            or model in self.missing_features
            or not query.keys() <= _KEYS
        ):
            return ""
        return f"{NAME}.html?{urlencode({'view': page, 'model': model} | dict(query))}"


def write_live(folder: Path, shared: str, page: LivePage) -> None:
    """Write the page and its models into `folder`; `shared` is the folder with the `SCRIPTS` of
    views. An OSError if it fails.
    """
    prompts = {
        name: prompt for name, prompt in page.prompts.items() if name not in page.missing_features
    }
    (folder / MODELS).mkdir(exist_ok=True)
    for name in prompts:
        (folder / MODELS / f"{name}.js").write_text(
            hand_over(f"model-{name}", json.dumps(_files(name))), encoding="utf-8"
        )
    left = ", ".join(f"{name} ({why})" for name, why in page.missing_features.items())
    views = {name: {"view": view, "caption": page.captions[name]} for name, view in VIEWS.items()}
    about = {"models": prompts, "views": views, "keys": sorted(_KEYS), "app": APP}
    about |= {"fields": _fields(), "twins": _twins(), "texts": _texts(), "trained": TRAINED}
    about["version"] = __version__
    data = {
        "about": json.dumps(about),
        "worker": json.dumps(modules.join_modules(HERE / "worker.js")),
    }
    text = fill_template(
        HERE / "try.html",
        options="".join(f"<option>{escape(name)}</option>" for name in prompts),
        buttons="".join(
            f'<button data-view="{name}">{escape(page.titles[name])}</button>' for name in VIEWS
        ),
        left=escape(f"Not here, since this page lacks a part of them: {left}." if left else ""),
        scripts="\n".join(
            [
                *(
                    f'<script type="application/json" id="{name}">{escape_data(text)}</script>'
                    for name, text in data.items()
                ),
                *(f'<script src="{shared}/{name}.js"></script>' for name in SCRIPTS),
                f'<script type="module">{modules.join_modules(HERE / "try.js")}</script>',
            ]
        ),
    )
    (folder / f"{NAME}.html").write_text(text, encoding="utf-8")


def _files(name: str) -> dict[str, object]:
    """The files of a checkpoint as worker.js takes them."""
    folder = checkpoints.find(name)
    lm = load(name)
    config, tokenizer = (
        json.loads((folder / f"{file}.json").read_text(encoding="utf-8"))
        for file in ("config", "tokenizer")
    )
    weights = base64.b64encode((folder / "model.safetensors").read_bytes()).decode()
    stops = {"ends": sorted(end_tokens(lm)), "whole": sequence_length(lm)}
    return {"config": config, "tokenizer": tokenizer, "weights": weights} | stops


def _fields() -> dict[str, object]:
    """What opening.js has to know of the fields of a config: what each may be, and what the
    browser computes.
    """
    described: dict[str, object] = {}
    for field in dataclasses.fields(Config):
        info = dataclasses.asdict(field_infos(Config)[field.name])
        about = {key: info[key] for key in _OF_FIELDS} | {"computed": computed_values(field)}
        if field.default is not dataclasses.MISSING:
            about["default"] = field.default
        described[field.name] = about
    return described


def _twins() -> dict[str, str]:
    """The plain twin of each model that a browser trains, by its size and by what it learned from:
    what differs from run to run has names, which run.js replaces.
    """
    known = {"name": "NAME_OF_MODEL", "parameters": "NUMBER_OF_PARAMETERS"}
    known |= {"unknown": "ID_OF_UNKNOWN", "ends": "{ID_OF_END}"}
    twins = {}
    for size, sizes in TRAINED["sizes"].items():
        tokenizer = CharTokenizer("ab")
        config = Config.from_dict({"vocab_size": 2} | sizes | TRAINED["common"])
        for kind, stops in (("list", writing.Stops((0,))), ("text", writing.NEVER)):
            twins[f"{size} {kind}"] = writing.source("", config, tokenizer, stops, known)
    return twins


def _texts() -> dict[str, str]:
    """What comes with the page to learn from, by its name."""
    return {name: (HERE / f"{name}.txt").read_text(encoding="utf-8") for name in TEXTS}
