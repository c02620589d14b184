"""BERT's WordPiece from a checkpoint folder: who splits text so, and vocab.txt, its older form.

Held against transformers' BertTokenizer, which reads the same files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_core.loading.files import MAX_JSON, read_json

#: tokenizer_class of those that are BERT's own in transformers, without the ending 'Fast'.
CLASSES = frozenset({"BertTokenizer", "ConvBertTokenizer", "DistilBertTokenizer", "DPRContextEncoderTokenizer",
                     "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer", "ElectraTokenizer", "LayoutLMTokenizer",
                     "LxmertTokenizer", "MobileBertTokenizer", "RetriBertTokenizer", "SqueezeBertTokenizer"})
#: model_type of families whose tokenizer is one of these where the folder names none.
FAMILIES = frozenset({"bert", "convbert", "distilbert", "electra", "ernie", "layoutlm", "lxmert", "megatron-bert",
                      "mobilebert", "nezha", "nomic_bert", "retribert", "squeezebert"})
#: Role -> BERT's name for its token, in the order in which transformers adds them.
_ROLES = {"bos": None, "eos": None, "unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}


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


def special_settings(folder: Path) -> dict[str, Any]:
    """What a folder says of its special tokens ('mask_token': ...), and of how it splits text.

    special_tokens_map.json counts before tokenizer_config.json, but not where the latter lists all added tokens: newer
    files do, and the map beside them is of older ones.

    Raises:
        LoadError: a file can't be read.
    """
    settings = _read(folder / "tokenizer_config.json")
    return settings if "added_tokens_decoder" in settings else settings | _read(folder / "special_tokens_map.json")


def from_vocabulary(folder: Path) -> Tokenizer:
    """BERT's WordPiece over a vocab.txt, one piece a line, with the tokens that were added to it later.

    Raises:
        ValueError: it can't be read or is no WordPiece vocabulary, or a token
            can't have the id that the folder gives it.
    """
    ids, settings = _read_vocabulary(folder / "vocab.txt"), special_settings(folder)
    named = {role: _token(settings.get(f"{role}_token") or name, special=True)
             for role, name in _ROLES.items() if name or settings.get(f"{role}_token")}
    declared = _declared(folder, settings, {token.content for token in named.values()})
    unk, cls, sep = (named[role].content for role in ("unk", "cls", "sep"))
    for name, known in ((unk, ids), (cls, ids | declared), (sep, ids | declared)):
        if name not in known:
            raise ValueError(f"vocab.txt lacks {name}: it is no WordPiece vocabulary")
    fast = Tokenizer(models.WordPiece(ids, unk_token=unk))
    fast.normalizer = _normalizer(settings)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    _add(fast, declared)
    fast.add_tokens([token for role, token in named.items() if token.content not in declared
                     and (token.content in ids or settings.get(f"{role}_token"))])
    fast.add_tokens([token for token in _extra(settings) if token.content not in declared])
    fast.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(name, fast.token_to_id(name)) for name in (cls, sep)])
    return fast


def _normalizer(settings: dict[str, Any]) -> normalizers.BertNormalizer:
    """BERT's own clean-up of a text, by the three settings that it has."""
    accents = settings.get("strip_accents")  # None: as the letters' case
    return normalizers.BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", True)), strip_accents=None if accents is None else bool(accents),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)))


def as_settings_say(fast: Tokenizer, folder: Path) -> Tokenizer:
    """A folder's tokenizer.json with the steps before the pieces that transformers takes, for a BERT from its settings.

    They count before what tokenizer.json says, and where they say nothing BERT's own count. A folder without
    tokenizer_config.json keeps the steps of its tokenizer.json, as one that was trained here needs.
    """
    path = folder / "tokenizer_config.json"
    if not path.exists() or not isinstance(fast.model, models.WordPiece) or not is_word_piece(folder):
        return fast
    steps = {"normalizer": _normalizer(read_json(path)), "pre_tokenizer": pre_tokenizers.BertPreTokenizer()}
    if all(_state(getattr(fast, name)) == _state(step) for name, step in steps.items()):
        return fast
    values = json.loads(fast.to_str()) | {name: _state(step) for name, step in steps.items()}
    return Tokenizer.from_str(json.dumps(values))  # anew: added tokens are normalised when they are added


def _state(step: normalizers.Normalizer | pre_tokenizers.PreTokenizer | None) -> Any:
    """What tokenizer.json says of a step."""
    return None if step is None else json.loads(step.__getstate__())


def _declared(folder: Path, settings: dict[str, Any], named: set[str]) -> dict[str, tuple[int, AddedToken]]:
    """Content -> id and token of all that the folder gives an id, in their order: newer files in tokenizer_config.json.

    Args:
        named: what special tokens are called.
    """
    if "added_tokens_decoder" in settings:
        entries = _mapping(settings["added_tokens_decoder"], "tokenizer_config.json's added_tokens_decoder")
        found = [(index, _token(value)) for index, value in entries.items()]
    else:
        special = named | {token.content for token in _extra(_read(folder / "tokenizer_config.json"))}
        found = [(index, _token(token, special=token in special))
                 for token, index in _read(folder / "added_tokens.json").items()]
    try:
        found = sorted(((int(index), token) for index, token in found), key=lambda entry: entry[0])
    except (TypeError, ValueError, OverflowError):
        raise ValueError("an added token's id is no whole number") from None
    for _, token in found:
        token.special = token.special or token.content in named
    return {token.content: (index, token) for index, token in found}


def _extra(settings: dict[str, Any]) -> list[AddedToken]:
    """Special tokens that have no role."""
    values = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    values = list(values.values()) if isinstance(values, dict) else values
    if not isinstance(values, list):
        raise ValueError("extra_special_tokens is no list of tokens")
    return [_token(value, special=True) for value in values]


def _mapping(value: Any, label: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{label} is no object")
    return value


def _token(value: Any, special: bool | None = None) -> AddedToken:
    """A token as the files write it: its text, or an object with its flags.

    Args:
        special: whether it is one; None is what the object says.
    """
    flags = {"content": value} if isinstance(value, str) else _mapping(value, f"an added token, {value!r},")
    content = flags.get("content")
    if not isinstance(content, str) or not content:
        raise ValueError(f"an added token has no content: {value!r}")
    special = bool(flags.get("special")) if special is None else special
    return AddedToken(content, special=special, normalized=bool(flags.get("normalized", not special)),
                      **{name: bool(flags.get(name)) for name in ("single_word", "lstrip", "rstrip")})


def _add(fast: Tokenizer, declared: dict[str, tuple[int, AddedToken]]) -> None:
    """Add tokens, each at its id: the vocabulary's own, or one after the other behind it, as the library counts."""
    fast.add_tokens([token for _, token in declared.values()])
    for content, (index, _) in declared.items():
        if (given := fast.token_to_id(content)) != index:
            raise ValueError(f"the added token {content!r} can't have the id {index}: behind vocab.txt comes {given}")


def _read_vocabulary(path: Path) -> dict[str, int]:
    """Piece -> id, its line; lines end as the file's do, for a piece may be U+2028 or another that splitlines ends."""
    if path.stat().st_size > MAX_JSON:
        raise ValueError(f"vocab.txt is larger than {MAX_JSON >> 20} MiB")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"vocab.txt can't be read ({error})") from None
    return {piece: number for number, piece in enumerate(text.removesuffix("\n").split("\n"))}
