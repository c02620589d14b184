"""A tiny random BERT with odd, coprime sizes, made here by transformers' save_pretrained."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_core.load import Loaded, load_model, with_dtype
from bert_core.serving.local import LocalEngine
from bert_core.trace import Trace, TraceRequest

WORDS = ("the a my her dog cat bird bank river money small old loud ran barked sat saw read wrote sings on in "
         "near of to and but not he she it they is was every day night un ##believ ##able play ##ing ##ed ##s . , ?")


def write_tokenizer(folder) -> int:
    """tokenizer.json of an uncased WordPiece; gives back the vocabulary's size."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
    vocab = {piece: n for n, piece in enumerate(pieces)}
    fast = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    fast.add_special_tokens(pieces[:5])
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast.save(str(folder / "tokenizer.json"))
    return len(vocab)


def save_model(folder, name: str, **sizes) -> None:
    """A random transformers model of class `name` and a tokenizer, in `folder`."""
    import transformers

    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=write_tokenizer(folder), hidden_size=35, num_hidden_layers=3, num_attention_heads=5,
        intermediate_size=44, max_position_embeddings=64, initializer_range=0.35, **sizes)
    getattr(transformers, name)(config).eval().save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny-bert")
    save_model(folder, "BertForPreTraining")
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder) -> Loaded:
    """BERT with masked-LM and NSP heads, float64."""
    return with_dtype(load_model(str(tiny_folder)), torch.float64)


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory) -> Loaded:
    """BERT with three classes, float64."""
    folder = tmp_path_factory.mktemp("tiny-classifier")
    save_model(folder, "BertForSequenceClassification", num_labels=3)
    return with_dtype(load_model(str(folder)), torch.float64)


@pytest.fixture(scope="session")
def tiny_engine(tiny_folder) -> LocalEngine:
    return LocalEngine(str(tiny_folder))


@pytest.fixture(scope="session")
def trace(tiny_engine) -> Trace:
    """A pair with a split word and a mask: 3 layers, 5 heads."""
    text = "The old dog barked unbelievable [MASK] playing ."
    return tiny_engine.run(TraceRequest(text, "She saw it near the river ."))
