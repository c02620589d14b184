"""How much a reader of SQuAD 2.0 would rather not answer.

Devlin et al. 2018 (arXiv 1810.04805), section 4.3: a question without an answer
is treated as a span that starts and ends at [CLS]. Only a checkpoint trained with
such questions has learnt to use that span.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bert_core.load import Loaded
from bert_core.tasks.support import softmax

if TYPE_CHECKING:
    from bert_core.tasks import Window

_NAMES = re.compile(r"squad[-_ ]?v?2", re.IGNORECASE)


def knows_no_answer(loaded: Loaded) -> bool:
    """Whether the checkpoint says that it was trained with unanswerable questions.

    It says so by `no_answer` in its config, or by SQuAD 2 in its name: the
    weights look the same either way.
    """
    return loaded.config.extra.get("no_answer") is True or bool(_NAMES.search(loaded.name))


def no_answer_score(windows: Sequence[Window]) -> float:
    """P(start at [CLS]) x P(end at [CLS]), the smallest over the windows, 0 to 1.

    A context has no answer only where no window has one.
    """
    return min(_span_at_cls(window) for window in windows)


def _span_at_cls(window: Window) -> float:
    places = [0, *window.positions]
    start, end = (softmax(window.trace.arrays[name][places])[0] for name in ("start_logits", "end_logits"))
    return float(start * end)
