"""What each setting of a recipe or an architecture does, in a sentence: the helps of the form and of the Runs page."""

from __future__ import annotations

from gptviz.fields import field_infos
from gptviz.model import Config
from gptviz.train.recipe import HELP

HELPS = {name: info.help for name, info in field_infos(Config).items()} | HELP | {"data": "What it learned from."}
