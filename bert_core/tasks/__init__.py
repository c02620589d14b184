"""What BERT is for, as answers: the one place that the command line and the pages both use.

Each function takes an engine and text and gives back frozen data. A model that
lacks the head says so (NoHead); an untrained head never answers.
"""

from bert_core.tasks.answers import Answer, AnswerGrid, Window, answer, answer_windows, best_answers
from bert_core.tasks.entities import Entity, Reading, TokenLabel, find_entities, group_entities, label_tokens
from bert_core.tasks.sentences import Classification, classify, embed, is_next
from bert_core.tasks.support import NoHead, require_head, softmax
from bert_core.tasks.vocabulary import (
    Gap,
    Prediction,
    Score,
    TokenScore,
    continuation,
    fill_mask,
    score,
    top_predictions,
)

__all__ = [
    "Answer", "AnswerGrid", "Classification", "Entity", "Gap", "NoHead", "Prediction", "Reading", "Score",
    "TokenLabel", "TokenScore", "Window", "answer", "answer_windows", "best_answers", "classify", "continuation",
    "embed", "fill_mask", "find_entities", "group_entities", "is_next", "label_tokens", "require_head", "score",
    "softmax", "top_predictions",
]
