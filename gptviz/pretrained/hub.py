"""Models on the Hugging Face hub, by name: `gpt2`, `HuggingFaceTB/SmolLM2-135M`.

The `huggingface_hub` library brings the files into its own cache, where other programs find them too; its settings for a mirror,
a token and working offline hold (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HF_HOME). Nothing but settings, tokenizers and weights
is fetched, and never code.
"""

from __future__ import annotations

import re
from pathlib import Path

from .families import ImportRefusedError

NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
SETTINGS = ("config.json", "tokenizer.json", "vocab.json", "merges.txt")
# The first of these that a model has is fetched; the second is the older format, opened without running what is in it.
WEIGHTS = (("model.safetensors", "model.safetensors.index.json"), ("pytorch_model.bin", "pytorch_model.bin.index.json"))


def is_name(text: str) -> bool:
    """Whether this could be the name of a model on the hub."""
    return NAME.fullmatch(text) is not None and ".." not in text and "--" not in text


def fetched(name: str) -> Path:
    """The folder with the files of the model of this name, from the cache or, where there is network, from the hub.

    What was fetched in part is gone on with at the next call.

    Raises:
        ImportRefusedError: there is no such model, it is not open to everybody, or there is no network and it is not in the
            cache.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

    if not is_name(name):
        raise ImportRefusedError(f"{name!r:.80} cannot be the name of a model on the hub, such as HuggingFaceTB/SmolLM2-135M")
    try:
        there = set(HfApi().list_repo_files(name))
        kinds = next((kind for kind in WEIGHTS if there & set(kind)), None)
        if kinds is None:
            raise ImportRefusedError(f"{name} on the hub has no model.safetensors and no pytorch_model.bin")
        patterns = [*SETTINGS, *kinds, f"{kinds[0].partition('.')[0]}-*-of-*.{kinds[0].rpartition('.')[2]}"]
        return Path(snapshot_download(name, allow_patterns=patterns))
    except GatedRepoError:
        raise ImportRefusedError(f"{name} asks for a permission first: get it on the model's page, and set HF_TOKEN") from None
    except RepositoryNotFoundError:
        raise ImportRefusedError(f"the hub has no model named {name}, or a private one: check the name, set HF_TOKEN") from None
    except (OSError, HfHubHTTPError, OfflineModeIsEnabled) as error:
        return _cached(name, error)


def _cached(name: str, error: Exception) -> Path:
    """The folder of this model in the cache.

    Raises:
        ImportRefusedError: it is not in the cache.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, LocalEntryNotFoundError):
        reason = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        raise ImportRefusedError(
            f"{name} is not in the cache of huggingface_hub, and the hub cannot be reached ({reason}): "
            "fetch it once where there is network, or give a folder or a file"
        ) from None
