"""BERT's WordPiece from a checkpoint folder: who splits text so, and vocab.txt, its older form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_core.loading.files import MAX_JSON, read_json

#: tokenizer_class of those that are BERT's own in transformers, without the ending 'Fast'.
CLASSES = frozenset({"BertTokenizer", "ConvBertTokenizer", "DistilBertTokenizer", "DPRContextEncoderTokenizer",
                     "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer", "ElectraTokenizer", "LayoutLMTokenizer",
                     "LxmertTokenizer", "MobileBertTokenizer", "RetriBertTokenizer", "SqueezeBertTokenizer"})
#: model_type of families whose tokenizer is one of these where the folder names none.
FAMILIES = frozenset({"bert", "convbert", "distilbert", "electra", "ernie", "layoutlm", "lxmert", "megatron-bert",
                      "mobilebert", "nezha", "nomic_bert", "retribert", "squeezebert"})


def is_word_piece(folder: Path) -> bool:
    """Whether transformers would split text by BERT's WordPiece here: `tokenizer_class` says so, or else the family.

    Raises:
        LoadError: a file can't be read.
    """
    settings, config = (_read(folder / name) for name in ("tokenizer_config.json", "config.json"))
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if named is not None:
        return isinstance(named, str) and named.removesuffix("Fast") in CLASSES
    return config.get("model_type", "bert") in FAMILIES


def _read(path: Path) -> dict[str, Any]:
    """A JSON file, {} where there is none."""
    return read_json(path) if path.exists() else {}


def from_vocabulary(folder: Path) -> Tokenizer:
    """BERT's WordPiece over a vocab.txt, one piece a line.

    Raises:
        ValueError: it can't be read or is no WordPiece vocabulary.
    """
    ids = _read_vocabulary(folder / "vocab.txt")
    settings = _read(folder / "tokenizer_config.json")
    accents = settings.get("strip_accents")  # None: as the letters' case
    fast = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", True)), strip_accents=None if accents is None else bool(accents),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    fast.add_special_tokens([token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if token in ids])
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return fast


def _read_vocabulary(path: Path) -> dict[str, int]:
    """Piece -> id, its line; lines end as the file's do, for a piece may be U+2028 or another that splitlines ends."""
    if path.stat().st_size > MAX_JSON:
        raise ValueError(f"vocab.txt is larger than {MAX_JSON >> 20} MiB")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"vocab.txt can't be read ({error})") from None
    ids = {piece: number for number, piece in enumerate(text.removesuffix("\n").split("\n"))}
    missing = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in ids]
    if missing:
        raise ValueError(f"vocab.txt lacks {missing[0]}: it is no WordPiece vocabulary")
    return ids
