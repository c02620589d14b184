"""A few tokens are run when a model is loaded, to look up what its class, its head and its config.json leave open.

Which way it reads: XLM has `causal`, ERNIE `is_decoder`, and a Llama that
classifies reads to the left all the same. Whether what it gives out as
attention is one: SqueezeBERT's are scores, before the softmax. Which rows may
share a pass: MobileBERT looks at its neighbours, padding or not, and a GPT-2
that classifies may have no padding at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bert_core.adapters.foreign import ForeignModel, Shares
from bert_core.adapters.quiet import first_line
from bert_core.loading.errors import LoadError
from bert_core.model import Inputs

#: Tokens that are run; even, so that no window of an odd size is taken for all of them.
_TOKENS = 8
#: How far a row of attention may be from adding up to 1, in bf16 too.
_ROW = 0.01
#: What rounding moves at most, of the largest number beside it, and the least that this largest is taken for.
_ROUNDING, _LEAST = 1e-4, 0.1


@dataclass(frozen=True)
class Probed:
    """What a run of a few tokens shows.

    Attributes:
        is_causal: no token looks at a later one, in any layer and head.
        has_probabilities: whether the attention that it gives out is one.
        shares: as in ForeignModel.
    """

    is_causal: bool
    has_probabilities: bool
    shares: Shares


def probe(model: ForeignModel) -> Probed:
    """Run a few tokens alone and together.

    Raises:
        LoadError: it gives no attention, or of another shape; every picture would be empty.
    """
    whole, other = _tokens(model, _TOKENS if model.config.max_tokens >= _TOKENS else 2)
    half = whole[:len(whole) // 2]
    alone = _run_alone(model, whole)
    probs = alone["attention_probs"]
    has_probabilities = _are_probabilities(probs)
    if has_probabilities:
        is_causal = not bool(probs.triu(1).any())
    else:  # what follows the first half makes no difference to it
        is_causal = _agree(_run_alone(model, half)["hidden_states"], alone["hidden_states"])
    beside: dict[Shares, Tensor] = {"padded": half, "equal": other}
    shares = (kind for kind, row in beside.items() if _may_share(model, whole, alone, row))
    return Probed(is_causal, has_probabilities, next(shares, "alone"))


def _run_alone(model: ForeignModel, row: Tensor) -> Mapping[str, Tensor]:
    """What the model gives of (T,) ids, its attention as `probe` wants it."""
    config = model.config
    try:
        found = _run(model, [row])
    except Exception as error:
        raise LoadError(f"{config.model_type} gives no attention ({first_line(error)})") from None
    shape = tuple(found["attention_probs"].shape)
    wanted = (1, config.num_hidden_layers, config.num_attention_heads, len(row), len(row))
    if shape != wanted:
        raise LoadError(f"{config.model_type} gives attention of shape {shape}, not {wanted}")
    return found


def _tokens(model: ForeignModel, count: int) -> Tensor:
    """(2, T) ids, none of them padding, and none twice if the vocabulary has so many."""
    size, padding = model.config.vocab_size, model.config.pad_token_id
    known = [index for index in range(min(size, 2 * count + 1)) if index != padding] or [padding]
    return torch.tensor([known[n % len(known)] for n in range(2 * count)], device=model.device).view(2, count)


def _run(model: ForeignModel, rows: Sequence[Tensor]) -> Mapping[str, Tensor]:
    """What the model gives of (T,) ids each, padded to one batch."""
    ids = pad_sequence(list(rows), batch_first=True, padding_value=model.config.pad_token_id)
    mask = pad_sequence([torch.ones_like(row).bool() for row in rows], batch_first=True)
    causal = torch.full((len(rows),), model.config.is_decoder)
    with torch.no_grad():
        return model.arrays(Inputs(ids, torch.zeros_like(ids), mask, causal))


def _are_probabilities(probs: Tensor) -> bool:
    """Whether rows of attention lie between 0 and 1 and add up to 1; weights that overflow are another's to say."""
    rows = probs.float()
    rows = rows[rows.isfinite().all(-1)]
    return bool((rows >= -_ROW).all() and ((rows.sum(-1) - 1).abs() <= _ROW).all())


def _may_share(model: ForeignModel, row: Tensor, alone: Mapping[str, Tensor], other: Tensor) -> bool:
    """Whether two rows of (T,) ids have the same numbers in one pass as each alone, as the first has in `alone`."""
    try:
        together, second = _run(model, [row, other]), _run(model, [other])
    except Exception:  # each architecture raises its own: it can't run them so
        return False
    return all(_agree(one[name], together[name][n:n + 1]) for n, one in enumerate((alone, second)) for name in one)


def _agree(alone: Tensor, other: Tensor) -> bool:
    """Whether two arrays are the same but for rounding, where the second may have more behind."""
    cut = other[tuple(slice(size) for size in alone.shape)]
    if cut.shape != alone.shape:
        return False
    last = tuple(range(max(alone.ndim - 2, 1), alone.ndim))
    largest = alone.abs().amax(dim=last, keepdim=True).clamp(min=_LEAST)
    allowed = max(_ROUNDING, 4 * torch.finfo(alone.dtype).eps)
    return bool(((cut - alone).abs() <= allowed * largest).all())
