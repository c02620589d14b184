"""The engine behind the pages: in-process by default, Ray Serve at scale."""

from bert_core.serving.engine import Engine, load_engine
from bert_core.serving.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "load_engine"]
