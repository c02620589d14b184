"""Download from the model hub: safetensors, config and tokenizer files only."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bert_core.loading.errors import LoadError

FILES = ["config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
         "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt", "*.model", "bpe.codes"]


#: Called with bytes fetched and bytes in all; raise Cancelled in it to stop.
Watch = Callable[[int, int], None]


class Cancelled(LoadError):
    """Whoever watched the download stopped it."""


def download(name: str, watch: Watch | None = None) -> Path:
    """Fetch a hub model's files, or find them in the local cache.

    Args:
        name: a hub id, already checked for form.
        watch: told of the progress, and able to stop it.

    Raises:
        LoadError: the hub is switched off, can't be reached, or has no such model.
        Cancelled: `watch` said so; what was fetched is kept for the next try.
    """
    if os.environ.get("BOTH_WAYS_HUB", "on") == "off":
        raise LoadError(f"{name}: downloads are switched off here; choose a shipped model")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        if watch is not None:
            _fetch_watched(name, watch)
        return Path(snapshot_download(name, allow_patterns=FILES, etag_timeout=5))
    except RepositoryNotFoundError:
        raise LoadError(f"{name}: the hub has no such public model") from None
    except Cancelled:
        raise
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        if isinstance(error.__cause__, RepositoryNotFoundError):
            raise LoadError(f"{name}: the hub has no such public model") from None
        reason = type(error).__name__
        raise LoadError(
            f"{name}: the model hub can't be reached ({reason}); the shipped models work without it"
        ) from None


def _fetch_watched(name: str, watch: Watch) -> None:
    """Fetch file by file into the cache, `watch` told of every chunk."""
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.utils import tqdm

    files = [f for f in snapshot_download(name, allow_patterns=FILES, etag_timeout=5, dry_run=True) if f.will_download]
    total, done = sum(f.file_size or 0 for f in files), 0
    watch(done, total)

    class Bar(tqdm):
        """Draws nothing; hands every chunk's size on."""

        def __init__(self, *args, **options):
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n=1):
            nonlocal done
            done += int(n or 0)
            watch(min(done, total), total)

    for file in files:
        hf_hub_download(name, file.filename, revision=file.commit_hash, etag_timeout=5, tqdm_class=Bar)
