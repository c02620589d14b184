"""Download from the model hub: safetensors, config and tokenizer files only."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bert_core.loading.errors import LoadError
from bert_core.loading.files import INDEX, MAX_JSON, WEIGHTS

if TYPE_CHECKING:
    from huggingface_hub import DryRunFileInfo

FILES = ["config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
         "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "*.model",
         "bpe.codes"]
#: Most bytes of one model. BERT-large in float32 has 1.3 GiB; a larger one would fill a laptop's memory as well as
#: the disk that all visitors share.
MAX_BYTES = 2 * 2**30

#: Called with bytes fetched and bytes in all; raise Cancelled in it to stop.
Watch = Callable[[int, int], None]


class Cancelled(LoadError):
    """Whoever watched the download stopped it."""


def cached(name: str) -> Path | None:
    """The folder of a hub model that was fetched before, None unless it has its config and all its weights.

    Looks at this machine's disk only.

    Args:
        name: a hub id, already checked for form.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=FILES, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError):
        return None
    return folder if (folder / "config.json").exists() and _has_weights(folder) else None


def _has_weights(folder: Path) -> bool:
    """Whether the weights are there; of sharded ones, each file that the index names."""
    index = folder / INDEX
    if (folder / WEIGHTS).exists() or not index.exists():
        return any(folder.glob("*.safetensors"))
    try:
        shards = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        return all((folder / shard).exists() for shard in set(shards))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):  # damaged: loading says so
        return True


def size(name: str) -> int:
    """Bytes that a download would still fetch, as the hub says.

    Raises:
        LoadError: as `download`.
    """
    with _in_one_line(name):
        return sum(_bytes(file) for file in _wanted(name) if file.will_download)


def download(name: str, watch: Watch | None = None) -> Path:
    """Fetch a hub model's files that are not in the local cache yet.

    Args:
        name: a hub id, already checked for form.
        watch: told of the progress, and able to stop it.

    Raises:
        LoadError: the hub is switched off, can't be reached, or has no such model;
            or the model has no safetensors, or more than MAX_BYTES.
        Cancelled: `watch` said so; what was fetched is kept for the next try.
    """
    with _in_one_line(name):
        from huggingface_hub import snapshot_download

        _fetch(name, [file for file in _wanted(name) if file.will_download], watch)
        return Path(snapshot_download(name, allow_patterns=FILES, local_files_only=True))


def is_on() -> bool:
    """Whether downloads are allowed; a word that is neither on nor off allows none."""
    return (os.environ.get("BOTH_WAYS_HUB") or "on").lower() in ("on", "1", "true", "yes")


@contextmanager
def _in_one_line(name: str) -> Iterator[None]:
    """What can go wrong with the hub, as a LoadError."""
    if not is_on():
        raise LoadError(f"{name}: downloads are switched off here; choose a shipped model")
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        yield
    except HFValidationError:
        raise LoadError(f"{name}: the hub has no names of this form; write owner/model") from None
    except RepositoryNotFoundError:
        raise LoadError(f"{name}: the hub has no such public model") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        if isinstance(error.__cause__, RepositoryNotFoundError):
            raise LoadError(f"{name}: the hub has no such public model") from None
        reason = type(error.__cause__ or error).__name__  # the library asks in a dry run, whose own error says nothing
        raise LoadError(
            f"{name}: the model hub can't be reached ({reason}); the shipped models work without it"
        ) from None


def _wanted(name: str) -> list[DryRunFileInfo]:
    """The model's files that the explorer reads, the smallest first, so that weights come when all else is there."""
    from huggingface_hub import snapshot_download

    files = snapshot_download(name, allow_patterns=FILES, etag_timeout=5, dry_run=True)
    if not any(file.filename.endswith(".safetensors") for file in files):
        raise LoadError(f"{name}: the hub has no safetensors of it, and pickled weights, which can run code, are "
                        "refused; choose another model")
    _check_size(name, sum(_bytes(file) for file in files))
    for file in files:
        if not file.filename.endswith(".safetensors") and _bytes(file) > MAX_JSON:
            raise LoadError(f"{name}: {file.filename} has {in_words(_bytes(file))}, and of files that are no weights "
                            f"at most {in_words(MAX_JSON)} are fetched; choose another model")
    return sorted(files, key=_bytes)


def _bytes(file: DryRunFileInfo) -> int:
    return file.file_size or 0


def _check_size(name: str, count: int) -> None:
    if count > MAX_BYTES:
        raise LoadError(f"{name}: it has {in_words(count)}, and at most {in_words(MAX_BYTES)} are fetched; "
                        "choose a smaller model")


def in_words(count: int) -> str:
    """Bytes as one reads them: '438 MiB', '2.1 GiB'."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.0f} MiB"


def _fetch(name: str, files: list[DryRunFileInfo], watch: Watch | None) -> None:
    """Fetch file by file into the cache; every chunk is counted and told to `watch`."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm

    total, done = sum(_bytes(file) for file in files), 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        _check_size(name, done)  # a server may send more than it said
        if watch is not None:
            watch(min(done, total), total)

    class Bar(tqdm):
        """Draws nothing; hands every chunk's size on."""

        def __init__(self, *args, **options):
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n=1):
            count(int(n or 0))

    count(0)
    for file in files:
        hf_hub_download(name, file.filename, revision=file.commit_hash, etag_timeout=5, tqdm_class=Bar)
