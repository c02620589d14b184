"""Tiny random checkpoints of every family the explorer loads, as save_pretrained writes them.

D 15, H 3, I 23, L 2 where the family allows it; each with its own kind of
tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.adapters.tokenizer_kinds import KINDS

_BERT = {"hidden_size": 15, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 23,
         "max_position_embeddings": 41}
_ROBERTA = {**_BERT, "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
            "max_position_embeddings": 43}
_XLM = {"emb_dim": 15, "n_layers": 2, "n_heads": 3, "max_position_embeddings": 41, "pad_index": 2, "eos_index": 1,
        "bos_index": 0, "unk_index": 3, "mask_index": 5}


@dataclass(frozen=True)
class Family:
    """One row of the loading table.

    Attributes:
        name: what a teacher calls it.
        architecture: the transformers class whose checkpoint is loaded.
        tokenizer: key of KINDS.
        config: fields of its config.
        ours: whether our own encoder runs it (else the adapter).
        single: transformers computes its softmax in float32 whatever the
            weights' dtype, so that padding changes the last digits.
    """

    name: str
    architecture: str
    tokenizer: str
    config: dict[str, Any] = field(default_factory=dict)
    ours: bool = True
    single: bool = False


FAMILIES = (
    Family("BERT", "BertForPreTraining", "WordPiece", _BERT),
    Family("BERT, causal", "BertLMHeadModel", "WordPiece", {**_BERT, "is_decoder": True}),
    Family("SpanBERT", "BertModel", "WordPiece, vocab.txt alone", _BERT),
    Family("Multilingual BERT", "BertForMaskedLM", "WordPiece", {**_BERT, "hidden_act": "gelu"}),
    Family("HerBERT", "BertForMaskedLM", "BPE, end of word", {**_BERT, "pad_token_id": 1}),
    Family("RoBERTa", "RobertaForMaskedLM", "byte-level BPE", _ROBERTA),
    Family("PhoBERT", "RobertaForMaskedLM", "Python: PhoBERT's", _ROBERTA),
    Family("CamemBERT", "CamembertForMaskedLM", "unigram", _ROBERTA),
    Family("XLM-RoBERTa", "XLMRobertaForMaskedLM", "unigram", _ROBERTA),
    Family("DistilBERT", "DistilBertForMaskedLM", "WordPiece",
           {"dim": 15, "n_layers": 2, "n_heads": 3, "hidden_dim": 23, "max_position_embeddings": 41}),
    Family("ELECTRA, discriminator", "ElectraForPreTraining", "WordPiece", {**_BERT, "embedding_size": 7}),
    Family("ELECTRA, generator", "ElectraForMaskedLM", "WordPiece", {**_BERT, "embedding_size": 7}),
    Family("ALBERT", "AlbertForMaskedLM", "unigram, ALBERT's", {**_BERT, "embedding_size": 7}),
    Family("ALBERT, older files", "AlbertForPreTraining", "SentencePiece file", {**_BERT, "embedding_size": 7}),
    Family("GPT-2", "GPT2LMHeadModel", "byte-level BPE, no specials",
           {"n_embd": 15, "n_layer": 2, "n_head": 3, "n_positions": 41, "bos_token_id": 0, "eos_token_id": 0}, False),
    Family("DeBERTa", "DebertaForMaskedLM", "byte-level BPE, DeBERTa's",
           {**_BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 17}, False),
    Family("DeBERTa v2 and v3", "DebertaV2ForMaskedLM", "unigram, DeBERTa's",
           {**_BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8,
            "share_att_key": True, "norm_rel_ebd": "layer_norm"}, False),
    Family("FlauBERT", "FlaubertWithLMHeadModel", "Python: FlauBERT's", _XLM, False, single=True),
    Family("XLM", "XLMWithLMHeadModel", "Python: XLM's", _XLM, False, single=True),
    Family("ModernBERT", "ModernBertForMaskedLM", "byte-level BPE, BERT's template",
           {**_BERT, "hidden_size": 18, "local_attention": 6, "pad_token_id": 0, "bos_token_id": None,
            "eos_token_id": None, "cls_token_id": 1, "sep_token_id": 2}, False, single=True),
    Family("unknown: MPNet", "MPNetForMaskedLM", "WordPiece", {**_BERT, "pad_token_id": 1}, False),
    Family("unknown: ERNIE", "ErnieForMaskedLM", "WordPiece", _BERT, False),
    Family("unknown: OPT", "OPTForCausalLM", "byte-level BPE, no specials",
           {**_BERT, "ffn_dim": 23, "word_embed_proj_dim": 15, "pad_token_id": 1}, False),
)


def make_family(folder: Path, family: Family, seed: int = 5) -> Path:
    """Write a family's checkpoint: random weights, its tokenizer, a vocabulary that fits."""
    import transformers
    from transformers import AutoTokenizer

    KINDS[family.tokenizer](folder)
    if family.tokenizer == "WordPiece, vocab.txt alone":
        size = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    else:
        size = len(AutoTokenizer.from_pretrained(folder))
    architecture = getattr(transformers, family.architecture)
    torch.manual_seed(seed)
    known = "n_words" if family.architecture.startswith(("XLMWith", "Flaubert")) else "vocab_size"
    config = architecture.config_class(**{known: size + 1, **family.config})
    model = architecture(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return folder
