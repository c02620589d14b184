"""The models that a process keeps in memory: those used last, within a number and a size."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from bert_core.load import Loaded
from bert_core.serving.cache import asked_bytes

#: Models kept in memory at once, and bytes of their weights unless BOTH_WAYS_MODELS_MB says otherwise.
MAX_MODELS, MODEL_BYTES = 12, 6 * 2**30
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass
class _Loading:
    """A model on its way.

    Attributes:
        turn: held by who loads it; the others who want it wait.
        wanted_by: how many threads are in here.
        overtaken: whether another model was put under its name since the loading began.
    """

    turn: threading.Lock = field(default_factory=threading.Lock)
    wanted_by: int = 0
    overtaken: bool = False


class KeptModels:
    """Loads each model once, whoever asks at the same moment, and keeps it as long as there is room.

    One that was dropped while somebody still has it is not loaded again, but kept again.

    Args:
        default: a model that is never dropped.
        load: (name, precision) -> the model; other models are at hand meanwhile.
    """

    def __init__(self, default: str, load: Callable[[str, str], Loaded]):
        self.default, self._load = default, load
        self.bytes = asked_bytes("BOTH_WAYS_MODELS_MB", MODEL_BYTES)
        self._models: OrderedDict[tuple[str, str], Loaded] = OrderedDict()
        self._alive: weakref.WeakValueDictionary[tuple[str, str], Loaded] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        self._loading: dict[tuple[str, str], _Loading] = {}

    def get(self, name: str, precision: str = "fp32") -> Loaded:
        """The model of this name in this precision, loaded on first use."""
        key = (name, precision)
        with self._lock:
            if (there := self._alive.get(key)) is not None:
                self._keep(key, there)
                return there
            loading = self._loading.setdefault(key, _Loading())
            loading.wanted_by += 1
        try:
            with loading.turn:  # others go on with the models that are there
                return self._fresh(key, loading)
        finally:
            with self._lock:
                loading.wanted_by -= 1
                if not loading.wanted_by:
                    del self._loading[key]

    def _fresh(self, key: tuple[str, str], loading: _Loading) -> Loaded:
        """Load it, unless somebody has just done so; once more if it is overtaken."""
        while True:
            with self._lock:
                if (there := self._alive.get(key)) is not None:
                    return there
                loading.overtaken = False
            fresh = self._load(*key)
            with self._lock:
                if not loading.overtaken:
                    self._keep(key, fresh)
                    return fresh

    def replace(self, loaded: Loaded) -> None:
        """Keep this one under its name, in place of any that had it."""
        with self._lock:
            for key in [k for k in self._alive if k[0] == loaded.name]:
                del self._alive[key]
                self._models.pop(key, None)
            for key in [k for k in self._loading if k[0] == loaded.name]:
                self._loading[key].overtaken = True
            self._keep((loaded.name, "fp32"), loaded)

    def __contains__(self, name: str) -> bool:
        """Whether `get` gives it at once."""
        return (name, "fp32") in self._alive

    def names(self) -> list[tuple[str, str]]:
        """(name, precision) of what is kept, the one used last at the end."""
        with self._lock:
            return list(self._models)

    def alive(self) -> frozenset[str]:
        """Names of what is kept, or was dropped and is still in use."""
        with self._lock:
            return frozenset(name for name, _ in self._alive)

    def _keep(self, key: tuple[str, str], loaded: Loaded) -> None:
        """Keep it, and drop the oldest beyond the limits; never the default, nor this one however large."""
        self._models[key] = self._alive[key] = loaded
        self._models.move_to_end(key)
        others = [k for k in self._models if k[0] != self.default and k != key]
        while others and (len(self._models) > MAX_MODELS or self._weight_bytes() > self.bytes):
            del self._models[others.pop(0)]

    def _weight_bytes(self) -> int:
        """Bytes of all weights; those that shipped models share are counted for each of them."""
        return sum(loaded.info.parameters * DTYPES[precision].itemsize
                   for (_, precision), loaded in self._models.items())
