"""A page of the app as one record: all that the menu, Home, the words, the tour, the next step and
the tests know of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from gptviz.model.kinds import MODEL_KINDS, Kind

if TYPE_CHECKING:
    from gptviz.model import Config

Group = Literal["From outside", "What it is made of", "Take it apart", "Your models"]
# The groups of the menu, in their order.
GROUP_NAMES: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class Keys:
    """Keys of a view."""

    view: str  #: the folder of the view's scripts in `gptviz/components`
    keys: tuple[str, ...]  #: as the browser names them
    does: str  #: what they do, once the view has the keyboard


class AboutText(NamedTuple):
    """What is folded below a view, as Markdown."""

    how: str  #: the equation, and the function that computes it
    limits: str  #: what the view leaves out or cannot show


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """A page of the app."""

    #: its script is `pages/NAME.py`, what it shows lies in `gptviz/ui/pages/NAME`; the first page
    #: is "home"
    name: str
    title: str
    icon: str  #: as Streamlit names it
    group: Group  #: where the menu and Home show it
    #: its place within the group, in the order in which a newcomer reads: tens, so that another
    #: page fits between
    place: int
    #: the question that it answers, which stands above it; it may depend on the kind of the model
    question: str | Mapping[Kind, str]
    #: one sentence on what is seen, below the question; it may depend on the kind of the model
    caption: str | Mapping[Kind, str]
    sentence: str  #: what it shows, as the menu and Home say it
    #: the words of the field that it uses, in the order in which a reader meets them; the glossary
    #: explains them
    words: tuple[str, ...]
    #: its parts from top to bottom, then its keys. What is bold is written on the page in just
    #: these words.
    tour: tuple[str | Keys, ...]
    #: why to read it after the pages before it, as the last line of the page before says
    step: str = ""
    kinds: tuple[Kind, ...] = tuple(MODEL_KINDS)  #: the kinds of models it is about
    #: the model that ships whose picture shows best what the page is about; if empty, the best
    #: example of the first kind. It opens on this model until the reader has chosen something.
    opens_on: str = ""
    #: whether a model with this configuration has the parts that the page is about
    has_what_it_shows: Callable[[Config], bool] = lambda _: True
    #: the method of `LanguageModel` that computes what it shows of a prompt, which then is a
    #: command too; empty for none
    analysis: str = ""
    has_model: bool = True  #: whether it is about one model that a reader chooses
    reads_prompt: bool = True  #: whether it shows at once what a model makes of the reader's prompt
    #: for tests and benchmarks, what the address says for what the page does not open with
    states: tuple[Mapping[str, str], ...] = ()
    #: what the address says where its picture is taken, if that shows more than what it opens with
    pictured: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its script, as Streamlit names it."""
        if self.name == "home":
            return "app.py"
        return f"pages/{self.name}.py"

    @property
    def about(self) -> Mapping[str, AboutText]:
        """What `about.md` in its folder says of each of its views; empty if it has no such file."""
        return _read_about(self.name)


# A view in `about.md`: its name, and the two sections that each has.
_ABOUT = re.compile(
    r"^# ([^\n]+)\n\n## How it is computed\n\n(.+?)\n\n## What it cannot tell "
    r"you\n\n(.+?)\s*(?=^# |\Z)",
    re.DOTALL | re.MULTILINE,
)


@cache
def _read_about(name: str) -> dict[str, AboutText]:
    file = Path(__file__).parent / "pages" / name / "about.md"
    if not file.is_file():
        return {}
    return {
        view: AboutText(how, limits)
        for view, how, limits in _ABOUT.findall(file.read_text(encoding="utf-8"))
    }


def has_blocks(config: Config) -> bool:
    """Whether a model has any block."""
    return config.n_layer > 0


def has_neurons(config: Config) -> bool:
    """Whether a model has MLPs with neurons."""
    return config.n_layer > 0 and config.mlp_size > 0


# What the tours of several pages say.
MODEL_ON_TOP = (
    "At the top: the **Model**, its **Training step** where it has snapshots, and the **Prompt**, "
    "the text that it reads."
)
DETAILS_BELOW = (
    "At the bottom: the numbers and the code of what is on screen, how it is computed, and what "
    "it cannot show."
)
ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
TOKEN_KEYS = Keys(
    "token_strip",
    ("ArrowLeft", "ArrowRight", "Home", "End"),
    "lead from token to token; **Enter** chooses one",
)
ATTENTION_KEYS = (
    Keys(
        "attention_explorer",
        ARROWS,
        "lead from token to token, from cell to cell, or from head to head",
    ),
    Keys(
        "attention_explorer", ("Enter", "Escape"), "holds what is under the pointer, and lets it go"
    ),
)
