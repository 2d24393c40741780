"""The files of the page “Try it”: the page itself, and for each model a script that hands over the files of its checkpoint."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gptviz._version import __version__
from gptviz.components import kit
from gptviz.components.kit import modules
from gptviz.language_model import load
from gptviz.runs import checkpoints

from ..page_file import colours, handed, inert, style
from . import HERE, lacks

NAME = "try"
MODELS = "models"
APP = "http://localhost:8501"  # where Streamlit puts the app of one's own machine


# The views of the page, by the page of the app that shows the same: their folders in `gptviz.components`.
VIEWS = {"next_token": "sampling_ledger", "attention": "attention_explorer", "lens": "lens_grid", "generate": "generation_tree"}
SCRIPTS = ("token_strip", *VIEWS.values())


@dataclass(frozen=True)
class LivePage:
    """What the page shows.

    Attributes:
        prompts: the first prompt of each model, the first model first; those that a browser cannot compute are named on the page.
        titles: of each page in `VIEWS`.
        captions: for each page in `VIEWS` a sentence above its view.
    """

    prompts: Mapping[str, str]
    titles: Mapping[str, str]
    captions: Mapping[str, str]


def write_live(folder: Path, shared: str, page: LivePage) -> None:
    """Write the page and its models into `folder`, where `shared` is the folder with the `SCRIPTS` of views.

    Raises:
        OSError: a file cannot be written.
    """
    prompts = page.prompts
    folders = {name: checkpoints.find(name) for name in prompts}
    missing = {name: found for name, of in folders.items() if (found := lacks(of))}
    (folder / MODELS).mkdir(exist_ok=True)
    for name, of in folders.items():
        if name not in missing:
            (folder / MODELS / f"{name}.js").write_text(handed(f"model-{name}", json.dumps(_files(name, of))), encoding="utf-8")
    left = "".join(f" {name} ({why})" for name, why in missing.items())
    values = {
        "page_style": kit.page_style(),
        "colours": colours(),
        "style": style(),
        "options": "".join(f"<option>{escape(name)}</option>" for name in prompts if name not in missing),
        "buttons": "".join(f'<button data-view="{name}">{escape(page.titles[name])}</button>' for name in VIEWS),
        "left": escape(f"Not here, since this page lacks a part of them:{left}." if left else ""),
        "version": __version__,
        "scripts": _scripts(shared, {name: prompts[name] for name in prompts if name not in missing}, page),
    }
    template = (HERE / "try.html").read_text(encoding="utf-8")
    text = re.sub(r"\{\{ (\w+) \}\}", lambda found: values[found[1]], template)
    (folder / f"{NAME}.html").write_text(text, encoding="utf-8")


def _files(name: str, folder: Path) -> dict[str, object]:
    """The files of a checkpoint as worker.js takes them."""
    config, tokenizer = (json.loads((folder / f"{file}.json").read_text(encoding="utf-8")) for file in ("config", "tokenizer"))
    weights = base64.b64encode((folder / "model.safetensors").read_bytes()).decode()
    lm = load(name)
    stops = {"ends": sorted(lm.end_tokens), "whole": lm.sequence_length}
    return {"config": config, "tokenizer": tokenizer, "weights": weights} | stops


def _scripts(shared: str, prompts: Mapping[str, str], page: LivePage) -> str:
    views = {name: {"view": view, "caption": page.captions[name]} for name, view in VIEWS.items()}
    about = {"models": prompts, "views": views, "app": APP}
    data = {"about": json.dumps(about), "worker": json.dumps(modules.joined(HERE / "worker.js"))}
    return "\n".join(
        [
            *(f'<script type="application/json" id="{name}">{inert(text)}</script>' for name, text in data.items()),
            *(f'<script src="{shared}/{name}.js"></script>' for name in SCRIPTS),
            f'<script type="module">{modules.joined(HERE / "try.js")}</script>',
        ]
    )
