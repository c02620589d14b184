"""Tiny random checkpoints made by transformers' save_pretrained, for every test that needs one.

All sizes are odd or coprime, so that a swapped axis can't go unseen: D 15 in
3 heads of 5, I 23, 2 layers, 37 positions. transformers is imported only when
a checkpoint is made.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = (
    "the", "a", "dog", "cat", "barked", "slept", "all", "night", "in", "garden", "we", "walked", "home", "paris",
    "is", "of", "france", "capital", "good", "bad", "film", "was", "not", "who", "where", "she", "he", "it", "river",
    "##ing", "##ed", "##ly", "zebra", ".", ",", "?", "!", "'", "-", "<", ">",
)
VOCABULARY = tuple(dict.fromkeys((*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS)))

SIZES = dict(vocab_size=len(VOCABULARY), hidden_size=15, num_hidden_layers=2, num_attention_heads=3,
             intermediate_size=23, max_position_embeddings=37)


def wordpiece(lowercase: bool = True) -> Tokenizer:
    """BERT's tokenizer over the tiny vocabulary."""
    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    fast = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    fast.add_special_tokens(list(SPECIALS))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return fast


def save_tokenizer(folder: Path) -> None:
    """The tiny tokenizer as transformers writes it."""
    from transformers import BertTokenizerFast

    BertTokenizerFast(tokenizer_object=wordpiece(), model_max_length=SIZES["max_position_embeddings"],
                      **{f"{role}_token": name for role, name in
                         zip(("pad", "unk", "cls", "sep", "mask"), SPECIALS, strict=True)}).save_pretrained(folder)


def make_bert(folder: Path, architecture: str = "BertForPreTraining", seed: int = 3, **changes) -> Path:
    """A random BERT of the tiny sizes, with weights large enough to tell tokens apart.

    Args:
        architecture: any BertFor... class of transformers, or BertLMHeadModel.
        changes: config fields, such as `is_decoder` or `id2label`.
    """
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(**{**SIZES, "initializer_range": 0.5, **changes})
    model = getattr(transformers, architecture)(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "LayerNorm.weight")):
                parameter.add_(0.3 * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    save_tokenizer(folder)
    return folder
