"""What whoever runs the explorer may set, by environment variable.

BOTH_WAYS_MODEL     model of a visitor who chose none (default: twin-bert).
BOTH_WAYS_FOLDERS   'on' (default): any folder may be named as a model; 'off':
                    none; a path: only folders below it.
BOTH_WAYS_HUB       'on' (default) or 'off': downloads from the model hub.
BOTH_WAYS_PAUSE     pause in typing after which the picture follows
                    (default 120ms).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from bert_core.load import LoadError, shipped_names

#: Longest model name that is looked at, in characters.
MAX_NAME = 300


def default_model() -> str:
    """Name of the model that a new visitor sees."""
    return os.environ.get("BOTH_WAYS_MODEL", "twin-bert")


def typing_pause() -> str:
    """The pause of live text inputs, as Streamlit writes durations."""
    pause = os.environ.get("BOTH_WAYS_PAUSE", "120ms")
    return pause if re.fullmatch(r"\d{1,5}ms", pause) else "120ms"


def hub_is_on() -> bool:
    return os.environ.get("BOTH_WAYS_HUB", "on") != "off"


def check_model_name(name: str) -> str:
    """The name, if visitors may ask for it here.

    Raises:
        LoadError: it is too long, or a folder that the setting doesn't allow.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        raise LoadError(f"{name[:40]!r}... is no model's name")
    if name in shipped_names() or name == default_model():
        return name
    allowed = os.environ.get("BOTH_WAYS_FOLDERS", "on")
    looks_like_path = name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1
    if not looks_like_path and not (allowed == "on" and Path(name).is_dir()):
        return name
    if allowed == "on":
        return name
    if allowed != "off":
        root, folder = Path(allowed).resolve(), Path(name).expanduser().resolve()
        if folder.is_relative_to(root):
            return name
    raise LoadError("folders of models are switched off here; choose a shipped model")
