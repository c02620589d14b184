"""A model whose block is not BERT's, run by transformers with eager attention.

It fills the same arrays as our own encoder where transformers gives them out;
what it does not give is absent, with a reason in `gaps`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.model import Inputs

#: What a request may ask of our own encoder but not of this one -> how to say it.
_OWN_ONLY = {
    "position_ids": "positions can't be reordered", "blocked": "single attention pairs can't be cut",
    "head_gate": "heads can't be switched off", "embedding_gate": "embeddings can't be switched off",
    "feed_forward_gate": "the feed-forward part can't be switched off",
    "neuron_gate": "neurons can't be changed",
}
#: Which rows have the same numbers in one pass as alone: all (padded to one length), those of one length, or none.
Shares = Literal["padded", "equal", "alone"]


@dataclass(frozen=True)
class ForeignModel:
    """A transformers module and what is known about it; read-only, shared by everyone.

    Attributes:
        config: its sizes, in BERT's words.
        module: the transformers model, in evaluation mode.
        heads: as in `model.Model`.
        gaps: Trace array -> why there is none.
        parameters: how many numbers it has.
        takes: names of the arguments of its forward.
        position_padding: as in BertConfig, which does not know it of this family.
        shares: which rows may go through one pass.
    """

    config: BertConfig
    module: torch.nn.Module
    heads: frozenset[str]
    gaps: Mapping[str, str]
    parameters: int
    takes: frozenset[str]
    position_padding: int | None = None
    shares: Shares = "alone"

    @property
    def averages_tokens(self) -> bool:
        """Whether its sentence classifier reads the mean of all last vectors (some ModernBERTs), not one token's."""
        return getattr(self.module.config, "classifier_pooling", "cls") == "mean" and "classification" in self.heads

    @property
    def dtype(self) -> torch.dtype:
        return next(self.module.parameters()).dtype

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    def with_dtype(self, dtype: torch.dtype) -> ForeignModel:
        """A copy in another precision; this one stays as it is."""
        return replace(self, module=copy.deepcopy(self.module).to(dtype))

    def passes(self, lengths: Sequence[int]) -> list[list[int]]:
        """The rows of each pass, in order: none has other numbers than alone.

        In float64 no row is padded: transformers' lowest float64 is infinite in
        the float32 of its softmax, so a padding token that a window keeps from
        every other is no number there, and neither is who is multiplied with it.

        Args:
            lengths: of each row, in tokens.
        """
        if self.shares == "padded" and self.dtype != torch.float64:
            return [list(range(len(lengths)))]
        found: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            found.setdefault(row if self.shares == "alone" else length, []).append(row)
        return list(found.values())

    def arrays(self, inputs: Inputs) -> dict[str, Tensor]:
        """One forward pass.

        Args:
            inputs: rows that may share a pass, padded; only ids, segments and
                mask may differ from the default, and the attention must be the
                model's own.

        Returns:
            Trace array -> tensor, batch first: hidden_states (B, L+1, T, D),
            attention_probs (B, L, H, Tq, Tk) unless that is a gap, the
            embeddings (B, T, D), logits of the heads, and 'vocabulary'
            (B, T, V) of a language model.

        Raises:
            ValueError: the request asks for what only our own encoder can do.
        """
        self._refuse(inputs)
        given = {"input_ids": inputs.input_ids, "attention_mask": inputs.attention_mask.long()}
        if self.config.type_vocab_size > 1:
            given["token_type_ids"] = inputs.token_type_ids
        with_attention = "attention_probs" not in self.gaps
        out = self.module(**{name: value for name, value in given.items() if name in self.takes},
                          output_hidden_states=True, output_attentions=with_attention, return_dict=True)
        table = self.module.get_input_embeddings()(inputs.input_ids)
        found = {
            "hidden_states": torch.stack(tuple(out.hidden_states), dim=1),
            "token_embeddings": table[0] if isinstance(table, tuple) else table,  # I-BERT's come with their scale
            "embedding_output": out.hidden_states[0],
        }
        if with_attention:
            found["attention_probs"] = torch.stack(tuple(out.attentions), dim=1)
        return found | self._head_arrays(out)

    def _head_arrays(self, out) -> dict[str, Tensor]:
        if self.heads & {"mlm", "lm"}:
            return {"vocabulary": out.logits}
        if self.heads & {"classification", "token_classification"}:
            return {"logits": out.logits}
        if "question_answering" in self.heads:
            return {"start_logits": out.start_logits, "end_logits": out.end_logits}
        return {"pooled_output": out.pooler_output} if "pooler" in self.heads else {}

    def _refuse(self, inputs: Inputs) -> None:
        family = self.config.model_type
        for name, reason in _OWN_ONLY.items():
            if getattr(inputs, name) is not None:
                raise ValueError(f"{family} runs through transformers: {reason}")
        own = inputs.causal.all() if self.config.is_decoder else ~inputs.causal.any()
        if not bool(own):
            raise ValueError(f"{family} runs through transformers, only with its own {self.config.attention_kind} "
                             "attention")
