"""What each setting of a recipe or an architecture does, in a sentence: the helps of the form and of the Runs page."""

from __future__ import annotations

from gptviz.fields import field_infos
from gptviz.model import Config
from gptviz.train.recipe import Recipe

RECIPE_FIELDS = field_infos(Recipe)
HELPS = {name: info.help for name, info in (field_infos(Config) | RECIPE_FIELDS).items()} | {"data": "What it learned from."}
