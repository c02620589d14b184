"""One small tokenizer of each kind that the families use, written to a folder as its family does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.checkpoints import save_tokenizer

CORPUS = ["the dog barked all night in the garden", "a cat slept while we walked home along the river",
          "paris is the capital of france", "le chien dort dans le jardin", "pies śpi w ogrodzie",
          "con chó ngủ trong vườn", "who was it? she said: not he!"] * 3
ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def bert(folder: Path) -> None:
    save_tokenizer(folder)


def bert_vocabulary_only(folder: Path) -> None:
    """vocab.txt and nothing else, as checkpoints of 2018 have it."""
    from tests.checkpoints import VOCABULARY

    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")


def _byte_level(specials: list[str]) -> Tokenizer:
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    fast.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=330, special_tokens=specials, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return fast


def roberta(folder: Path) -> None:
    """Byte-level BPE, <s> A </s></s> B </s>."""
    from transformers import RobertaTokenizerFast

    parts = json.loads(_byte_level(ROBERTA_SPECIALS).to_str())["model"]
    RobertaTokenizerFast(vocab=parts["vocab"], merges=[tuple(m) for m in parts["merges"]]).save_pretrained(folder)


def gpt2(folder: Path) -> None:
    """Byte-level BPE with no specials around a text."""
    from transformers import GPT2TokenizerFast

    parts = json.loads(_byte_level(["<|endoftext|>"]).to_str())["model"]
    GPT2TokenizerFast(vocab=parts["vocab"], merges=[tuple(m) for m in parts["merges"]]).save_pretrained(folder)


def deberta(folder: Path) -> None:
    from transformers import DebertaTokenizerFast

    parts = json.loads(_byte_level(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]).to_str())["model"]
    DebertaTokenizerFast(vocab=parts["vocab"], merges=[tuple(m) for m in parts["merges"]]).save_pretrained(folder)


def modernbert(folder: Path) -> None:
    """Byte-level BPE in BERT's template."""
    from transformers import PreTrainedTokenizerFast

    fast = _byte_level(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    names = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "cls", "sep", "unk", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=fast, **names).save_pretrained(folder)


def _unigram(specials: list[str]) -> list[tuple[str, float]]:
    fast = Tokenizer(models.Unigram())
    fast.normalizer = normalizers.NFKC()
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=90, special_tokens=specials,
                                                             unk_token=specials[-1], show_progress=False))
    return [tuple(entry) for entry in json.loads(fast.to_str())["model"]["vocab"]]


def camembert(folder: Path) -> None:
    """SentencePiece unigram."""
    from transformers import CamembertTokenizerFast

    CamembertTokenizerFast(vocab=_unigram(["<s>", "<pad>", "</s>", "<mask>", "<unk>"])).save_pretrained(folder)


def albert(folder: Path) -> None:
    from transformers import AlbertTokenizerFast

    AlbertTokenizerFast(vocab=_unigram(["<pad>", "[CLS]", "[SEP]", "[MASK]", "<unk>"])).save_pretrained(folder)


def deberta_v2(folder: Path) -> None:
    from transformers import DebertaV2TokenizerFast

    specials = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
    DebertaV2TokenizerFast(vocab=_unigram(specials), unk_id=4).save_pretrained(folder)


def sentencepiece_file(folder: Path) -> None:
    """ALBERT's older form: spiece.model alone, which transformers converts."""
    import sentencepiece

    (folder / "corpus.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "spiece"), vocab_size=65, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_piece="<pad>")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "AlbertTokenizer"}', encoding="utf-8")


def _end_of_word_bpe(specials: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    fast = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=140, special_tokens=specials,
                                                         end_of_word_suffix="</w>", show_progress=False))
    parts = json.loads(fast.to_str())["model"]
    return parts["vocab"], [tuple(merge) for merge in parts["merges"]]


def herbert(folder: Path) -> None:
    """Character BPE with an end-of-word mark."""
    from transformers import HerbertTokenizerFast

    vocab, merges = _end_of_word_bpe(ROBERTA_SPECIALS)
    HerbertTokenizerFast(vocab=vocab, merges=merges).save_pretrained(folder)


def flaubert(folder: Path) -> None:
    """Written in Python: Moses, then BPE with an end-of-word mark; vocab.json and merges.txt."""
    specials = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{n}>" for n in range(10))]
    _write_merges(folder, specials, "FlaubertTokenizer")


def xlm(folder: Path) -> None:
    specials = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{n}>" for n in range(10))]
    _write_merges(folder, specials, "XLMTokenizer")


def _write_merges(folder: Path, specials: list[str], tokenizer_class: str) -> None:
    vocab, merges = _end_of_word_bpe(specials)
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    lines = [f"{a} {b} {n}" for n, (a, b) in enumerate(merges, start=1)]
    (folder / "merges.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer_class}), encoding="utf-8")


def phobert(folder: Path) -> None:
    """Written in Python: fastBPE with vocab.txt and bpe.codes, pieces marked @@."""
    vocab, merges = _end_of_word_bpe(["<unk>"])
    pieces = [name.removesuffix("</w>") if name.endswith("</w>") else f"{name}@@" for name in vocab if name != "<unk>"]
    (folder / "vocab.txt").write_text("\n".join(f"{piece} 1" for piece in dict.fromkeys(pieces)) + "\n", "utf-8")
    lines = [f"{a} {b} {n}" for n, (a, b) in enumerate(merges, start=1)]
    (folder / "bpe.codes").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PhobertTokenizer"}', encoding="utf-8")


KINDS: dict[str, Callable[[Path], None]] = {
    "WordPiece": bert, "WordPiece, vocab.txt alone": bert_vocabulary_only, "byte-level BPE": roberta,
    "byte-level BPE, no specials": gpt2, "byte-level BPE, BERT's template": modernbert,
    "byte-level BPE, DeBERTa's": deberta, "unigram": camembert, "unigram, ALBERT's": albert,
    "unigram, DeBERTa's": deberta_v2, "SentencePiece file": sentencepiece_file, "BPE, end of word": herbert,
    "Python: FlauBERT's": flaubert, "Python: XLM's": xlm, "Python: PhoBERT's": phobert,
}
