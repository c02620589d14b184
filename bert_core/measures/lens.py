"""The logit lens: what the masked-LM head reads in each layer's vector of a gap.

nostalgebraist 2020, interpreting GPT: the logit lens. The head was trained on
the last layer's vectors only, so what it can't read in an earlier one may be
there all the same (Belrose et al. 2023, arXiv 2303.08112).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import torch

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.predictions import Gap, read_gap
from bert_core.tasks.support import softmax
from bert_core.trace import TraceRequest, run_batch


def read_layers(
    loaded: Loaded, request: TraceRequest, position: int, k: int, truth: int | None = None
) -> Generator[None, None, tuple[Gap, ...]]:
    """One position's k best guesses, read in every layer's vector of it; yields between pass and head.

    Args:
        position: counted with [CLS] as 0.
        truth: the id to follow from layer to layer; None follows the model's own answer.

    Returns:
        L+1 gaps: the embedding output's, each layer's; the last is what the
        model answers. `truth` and `rank` are those of the id that is followed.

    Raises:
        ValueError: the model has no masked-LM head, transformers runs it, or there is no such position.
    """
    model = loaded.model
    if "mlm" not in model.heads:
        raise ValueError(f"{loaded.name} has no trained masked-LM head; choose a model that has one, such as twin-bert")
    if not isinstance(model, bert.Model):
        raise ValueError(f"{loaded.config.model_type} runs through transformers: only a head on this explorer's own "
                         "encoder can be asked in every layer")
    trace = run_batch(loaded, [replace(request, parts=("hidden_states",))])[0]
    if not 0 <= position < len(trace):
        raise ValueError(f"position {position} is not in this text; choose 0 to {len(trace) - 1}")
    yield
    vectors = torch.tensor(trace.hidden_states[:, position], dtype=model.dtype, device=model.device)  # (L+1, D)
    with torch.inference_mode():
        logits = bert.mlm_logits(model, vectors)  # (L+1, V)
    rows = softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)).cpu().numpy())
    followed = int(rows[-1].argmax()) if truth is None else truth
    return tuple(read_gap(row, position, loaded.tokenizer, k, followed) for row in rows)


def stays_first(layers: Sequence[Gap]) -> int | None:
    """The first row from which the followed piece is the best guess to the end; None where it isn't in the last."""
    others = [n for n, gap in enumerate(layers) if gap.rank != 1]
    start = others[-1] + 1 if others else 0
    return start if start < len(layers) else None
