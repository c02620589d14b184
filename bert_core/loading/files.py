"""A checkpoint folder on disk: config.json and safetensors, read header first.

Only the headers are read until everything in them has been checked, so that a
config or an index that asks for a trillion numbers costs nothing. Pickles are
never opened.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safetensors import SafetensorError, safe_open

from bert_core.loading.errors import LoadError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
#: Seconds between the tries of `patiently`: Windows lets nobody replace a file that another has open.
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.6) if os.name == "nt" else ()
#: Largest JSON file that is parsed, in bytes; a tokenizer.json of 250,000 pieces has about 17 MB.
MAX_JSON = 64 * 2**20
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
#: What weights may be, by the word in a header; whole numbers, or less than a byte each, stand for others by a scale
#: that isn't read.
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True)
class Stored:
    """Where one tensor lies: the file, its name in there, its shape, and what its numbers are ('F32')."""

    file: Path
    name: str
    shape: tuple[int, ...]
    kind: str


def check_entries(folder: Path) -> None:
    """LoadError if a pipe or a device stands in a folder, or in a folder of it: reading one may never end."""
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise LoadError(f"{path.name} is no regular file")


def read_json(path: Path) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        LoadError: it can't be read, is too large, or holds something else.
    """
    label = path.name
    try:
        if path.stat().st_size > MAX_JSON:
            raise LoadError(f"{label} is larger than {MAX_JSON >> 20} MiB")
        values = json.loads(path.read_text(encoding="utf-8"))
    except LoadError:
        raise
    except (OSError, ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of thousands of digits
        raise LoadError(f"{label} can't be read ({error})") from None
    if not isinstance(values, dict):
        raise LoadError(f"{label} holds no JSON object")
    return values


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: one, or the shards that its index names.

    An index may only name files in the folder itself. Beside the one file it
    is not looked at, as in transformers: an older way of saving left it there.
    """
    if (folder / WEIGHTS).exists() or not (folder / INDEX).exists():
        return [folder / WEIGHTS]
    shards = read_json(folder / INDEX).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise LoadError(f"{INDEX} has no weight_map")
    names = sorted({str(name) for name in shards.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise LoadError(f"{INDEX} names {name!r}, which is no safetensors file of this folder")
    return [folder / name for name in names]


def read_headers(folder: Path) -> dict[str, Stored]:
    """Name -> place and shape of every tensor, without reading one.

    Raises:
        LoadError: there are no safetensors (only pickles, say), or they may not be read, or are damaged.
    """
    stored: dict[str, Stored] = {}
    for file in weight_files(folder):
        if not file.exists():
            raise LoadError(_missing(folder, file))
        if not os.access(file, os.R_OK):  # safetensors would say that it isn't there
            raise LoadError(f"{file.name} may not be read by this user; its owner can allow it")
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a mapping
                    if name in stored:
                        raise LoadError(f"{name} stands in two files, {stored[name].file.name} and {file.name}")
                    place = opened.get_slice(name)
                    stored[name] = Stored(file, name, tuple(place.get_shape()), place.get_dtype())
        except (SafetensorError, OSError) as error:
            raise LoadError(f"{file.name} is damaged or no safetensors file ({error})") from None
    return stored


def _missing(folder: Path, file: Path) -> str:
    pickled = any(any(folder.glob(f"*{suffix}")) for suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5"))
    if pickled and file.name == WEIGHTS:
        return "only pickled weights, which can run code; save it as safetensors first"
    return f"{file.name} is missing"


def read_tensors(stored: Mapping[str, Stored], names: Iterable[str]) -> dict[str, Tensor]:
    """The tensors `names` (keys of `stored`), each file opened once.

    Raises:
        LoadError: a file is damaged, or a tensor holds something else than finite weights.
    """
    by_file: dict[Path, list[str]] = {}
    for name in names:
        by_file.setdefault(stored[name].file, []).append(name)
    tensors: dict[str, Tensor] = {}
    for file, wanted in by_file.items():
        try:
            with safe_open(file, framework="pt") as opened:
                tensors |= {name: opened.get_tensor(stored[name].name) for name in wanted}
        except (SafetensorError, OSError) as error:
            raise LoadError(f"{file.name} is damaged ({error})") from None
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).removeprefix("torch.")
        if kind not in FLOATS.values():
            raise LoadError(f"{name} holds {kind}; weights are {', '.join(FLOATS.values())}")
        check_finite(name, tensor)
    return tensors


def check_finite(name: str, weights: Tensor) -> None:
    """LoadError if a number among the weights is NaN or infinite: all that is computed from it would be NaN."""
    if weights.numel() and not all(map(math.isfinite, weights.detach().aminmax())):  # with a NaN both ends are
        raise LoadError(f"{name} holds NaN or infinity; nothing can be computed from that")


def patiently(act: Callable[[], T]) -> T:
    """What `act` gives, tried for a second where somebody else may stand in its way."""
    for pause in _PAUSES:
        try:
            return act()
        except PermissionError:
            time.sleep(pause)
    return act()


def put_in_place(part: Path, path: Path) -> None:
    """Put a finished file in the place of another, at once.

    Raises:
        OSError: it can't be put there, or what stands there is no file (a device, say).
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "what stands there is no file", str(path))
    patiently(lambda: os.replace(part, path))


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """`with in_place_of(path) as part: ...`: what is written to `part` stands at `path` at the end, whole.

    Raises:
        OSError: it can't be put there; whatever ends the block early, what stood at `path` stays and `part` goes.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        put_in_place(part, path)
    finally:
        with suppress(OSError):
            part.unlink()


def write_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, whole or not at all; who may read it is the umask's to say.

    It is made in a folder of its own beside its place: safetensors writes under a name that nobody knows, and what it
    leaves there when it is killed goes with that folder as soon as the file is written again.

    Raises:
        OSError: it can't be written; nothing of it is left.
    """
    from safetensors.torch import save_file  # with it comes torch, which readers of headers don't need

    part = path.with_name(f"{path.name}.part")
    whole = part / path.name
    try:
        _remove(part)
        part.mkdir()
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, whole, metadata)
        whole.chmod(part.stat().st_mode & 0o666)  # safetensors lets its owner alone read it
        put_in_place(whole, path)
    except (SafetensorError, OSError) as error:
        raise OSError(f"{path} can't be written ({error})") from None
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a folder with its files, or a file, as far as it can be removed."""
    shutil.rmtree(part, ignore_errors=True)
    with suppress(OSError):
        part.unlink()
