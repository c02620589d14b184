"""What whoever runs the explorer may set, by environment variable.

BOTH_WAYS_MODEL     model of a visitor who chose none (default: twin-bert).
BOTH_WAYS_FOLDERS   the folder below which visitors may name a folder as a model
                    (default: models, beside app.py), or 'off': none.
BOTH_WAYS_HUB       'on' (default) or 'off': downloads from the model hub
                    (bert_core/hub.py).
BOTH_WAYS_PAUSE     pause in typing after which the picture follows
                    (default 120ms, at most 60000ms).
BOTH_WAYS_FAST      whether visitors may choose the fast mode (bf16): 'auto'
                    (default, where the hardware has bf16), 'on' or 'off'.
BOTH_WAYS_RUN_KEEP  seconds for which a training run and its files stay when
                    nobody who watched it is there any more (default 300).

The settings of the engine, the kernel and the trainer (BOTH_WAYS_ENGINE, BOTH_WAYS_COMPILE,
BOTH_WAYS_TRAINER_NICE and others) are read in bert_core; docs/deploy.md has all.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import torch

from bert_core import hub
from bert_core.load import HUB_ID, LoadError, shipped_names
from bert_core.precision import has_bf16
from bert_core.training.live.desk import KEEP

#: Setting -> the values that are understood.
_FORMS = {
    "BOTH_WAYS_HUB": "(?i:on|off|1|0|true|false|yes|no)",
    "BOTH_WAYS_PAUSE": "[0-5]?[0-9]{1,4}ms|60000ms",
    "BOTH_WAYS_FAST": "auto|on|off",
    "BOTH_WAYS_COMPILE": "(?i:on|off)",
    "BOTH_WAYS_TRAINER_NICE": "1?[0-9]",
    **dict.fromkeys(("BOTH_WAYS_RUN_KEEP", "BOTH_WAYS_CACHE_MB", "BOTH_WAYS_MODELS_MB"), "[0-9]{1,5}"),
}
#: Longest model name that is looked at, in characters.
MAX_NAME = 300
DEFAULT_FOLDERS = Path(__file__).resolve().parent.parent / "models"


def misread() -> list[str]:
    """A line for each setting whose value is none: what stands in its place is a default, for the hub `off`."""
    given = {name: os.environ.get(name, "") for name in _FORMS}
    return [f"{name} is {value!r}, which is not allowed, and counts as "
            f"{'off' if name == 'BOTH_WAYS_HUB' else 'not set'}; docs/deploy.md lists its values"
            for name, value in given.items() if value and not _fits(name, value)]


def _fits(name: str, value: str) -> bool:
    return re.fullmatch(_FORMS[name], value) is not None


def default_model() -> str:
    """Name of the model that a new visitor sees."""
    return os.environ.get("BOTH_WAYS_MODEL") or "twin-bert"


def typing_pause() -> str:
    """The pause of live text inputs, as Streamlit writes durations; it takes a minute at most."""
    pause = os.environ.get("BOTH_WAYS_PAUSE", "120ms")
    return pause if _fits("BOTH_WAYS_PAUSE", pause) else "120ms"


def run_keep() -> float:
    """Seconds for which a training run stays after its last watcher left: 1 to a day."""
    asked = os.environ.get("BOTH_WAYS_RUN_KEEP", "")
    return float(min(86_400, max(1, int(asked)))) if _fits("BOTH_WAYS_RUN_KEEP", asked) else KEEP


def fast_is_offered() -> bool:
    """Whether the fast mode can be chosen; without instructions for bf16 it would be several times slower."""
    asked = os.environ.get("BOTH_WAYS_FAST", "auto")
    return asked == "on" or (asked != "off" and _hardware_has_bf16())


@functools.cache
def _hardware_has_bf16() -> bool:
    return has_bf16("cuda" if torch.cuda.is_available() else "cpu")


def check_model_name(name: str) -> str:
    """The name, if visitors may ask for it here.

    Raises:
        LoadError: it is too long, or a folder that the setting doesn't allow, or
            would have to be fetched, which only a visitor's own click starts.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        raise LoadError(f"{name[:40]!r}... is no model's name")
    if must_be_fetched(name):
        raise LoadError(f"{name} is not on this server yet; choose it under Model and download it first")
    if name in shipped_names() or name == default_model() or not _means_a_folder(name):
        return name
    root = folders_root()
    if root is None:
        raise LoadError("folders of models are switched off here; choose a shipped model")
    if not _lies_below(root, name):
        raise LoadError("the pages open models only below the folder that this server keeps for them "
                        "(BOTH_WAYS_FOLDERS); choose a shipped model")
    return name


def one_spelling(name: str) -> str:
    """The name by which a folder goes here, however it was written: './models/x' and 'models//x/' are 'models/x'.

    What is loaded and computed is kept by name: two spellings would be two models.
    """
    path, default = os.path.abspath(os.path.expanduser(name)), default_model()
    if name in shipped_names() or not (_means_a_folder(name) and os.path.isdir(path)):
        return name
    if default not in shipped_names() and path == os.path.abspath(os.path.expanduser(default)):
        return default
    below = os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path
    return path if below in shipped_names() else below


def must_be_fetched(name: str) -> bool:
    """Whether this is a hub id that may be downloaded here and was not yet; looks at the disk only."""
    is_here = name in (default_model(), *shipped_names()) or _means_a_folder(name)
    return not is_here and hub.is_on() and HUB_ID.fullmatch(name) is not None and hub.cached(name) is None


def _lies_below(root: Path, name: str) -> bool:
    """Whether the folder is there below the root, links and `..` followed."""
    try:
        return Path(name).expanduser().resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links, or the home of a user who isn't there
        return False


def folders_root() -> Path | None:
    """The folder below which visitors may open models, links followed; None if they may open none."""
    setting = os.environ.get("BOTH_WAYS_FOLDERS") or str(DEFAULT_FOLDERS)
    return None if setting == "off" else Path(setting).expanduser().resolve()


def _means_a_folder(name: str) -> bool:
    """Whether the name would be looked up on the disk, not on the hub."""
    return name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1 or os.path.lexists(name)
