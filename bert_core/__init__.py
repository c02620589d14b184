"""Both Ways: BERT's encoder, its traces, training and serving, without a page."""

from bert_core.load import LoadError, load_model
from bert_core.serving import load_engine
from bert_core.trace import MissingPart, Trace, TraceRequest

__all__ = ["LoadError", "MissingPart", "Trace", "TraceRequest", "load_engine", "load_model"]
