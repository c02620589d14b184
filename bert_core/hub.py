"""Download from the model hub: safetensors, config and tokenizer files only."""

from __future__ import annotations

import os
from pathlib import Path

from bert_core.loading.errors import LoadError

FILES = ["config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
         "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt", "*.model", "bpe.codes"]


def download(name: str) -> Path:
    """Fetch a hub model's files, or find them in the local cache.

    Args:
        name: a hub id, already checked for form.

    Raises:
        LoadError: the hub is switched off, can't be reached, or has no such model.
    """
    if os.environ.get("BOTH_WAYS_HUB", "on") == "off":
        raise LoadError(f"{name}: downloads are switched off here; choose a shipped model")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=FILES, etag_timeout=5))
    except RepositoryNotFoundError:
        raise LoadError(f"{name}: the hub has no such public model") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        reason = type(error).__name__
        raise LoadError(
            f"{name}: the model hub can't be reached ({reason}); the shipped models work without it"
        ) from None
