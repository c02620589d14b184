"""The engine behind the pages: in-process by default, Ray Serve at scale."""

from bert_core.serving.engine import Engine, load_engine
from bert_core.serving.waiting import EVERYONE, Busy, EngineError, NoMemory, Stopped, Superseded, TimedOut

__all__ = ["EVERYONE", "Busy", "Engine", "EngineError", "NoMemory", "Stopped", "Superseded", "TimedOut", "load_engine"]
