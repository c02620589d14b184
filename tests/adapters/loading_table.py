"""docs/loading.md, made from the checkpoints of the tests: `python -m tests.adapters.loading_table`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bert_core.load import Loaded, load_model
from bert_core.trace import ALL_PARTS, INPUT_PARTS
from tests.adapters.families import FAMILIES, Family, make_family

TARGET = Path(__file__).resolve().parents[2] / "docs" / "loading.md"
HEADER = """# What loads

Made by `python -m tests.adapters.loading_table` from checkpoints that the tests write with transformers'
`save_pretrained`, one for each family with its own kind of tokenizer. For each row the tests show that the
tokenizer gives transformers' ids and that every array that is there equals transformers' at float64 to 1e-10,
alone, padded and as a pair (1e-6 padded where transformers itself computes its softmax in float32: FlauBERT, XLM,
ModernBERT).

*Tokenizer*: a `tokenizer.json`, or else a `vocab.txt` where `tokenizer_class` (tokenizer_config.json, else
config.json) is BERT's or there is none, with the tokens of `added_tokens.json` or `added_tokens_decoder` at their
ids; a token that can't have its id is refused. Where such a BERT has a tokenizer_config.json beside its
tokenizer.json, what it says of case, accents and Chinese characters counts, as in transformers. Without it the
tokenizer.json is taken as it is, whereas transformers would lower the case of all letters. Every other tokenizer is
transformers' own. Those written in Python (also the Japanese BERT's) give no offsets, so these are found letter by
letter. Two things differ from transformers on purpose: a typed `[MASK]` is every family's mask token, and an empty
second sentence is a sentence.

*Encoder* says who runs the block: **ours** (`bert_core/model.py`, every intermediate) or the **adapter** over
transformers' Auto classes with eager attention (`bert_core/adapters/`). What a model lacks is absent from its Trace
and the page gives the reason. Weights are read from safetensors only; the pages open folders only below one root
(`models`, or `BOTH_WAYS_FOLDERS`), the command line any folder. Hub ids are checked for their form; code in a
checkpoint is never run. Encoder-decoders (T5, BART) are refused: the explorer shows one stack. An adapter model's
attention shows which way it reads, and it can't be run the other way (`--attention`). A head that this makes wrong
(masks filled from the left) is left out.
On loading, a few tokens are run to check two more things. Rows of attention must lie between 0 and 1 and add up to 1;
where they don't (SqueezeBERT gives out its scores), the model has no attention, its views give the reason, and the
rest stays. And a text must have the numbers that it has alone, whatever else is read with it. Texts share a pass of an
adapter model, padded to one length, only where that changes nothing. Otherwise only texts of one length share a pass
(MobileBERT, Nystromformer), or each has its own (a GPT-2 that classifies without a padding token). In float64 no text
is padded.
Relative positions (`position_embedding_type`), which transformers 5 no longer has, and tensors of the encoder that it
would leave on disk are refused. A tied decoder that differs from the word table in the file is kept as its own.

| family | checkpoint | tokenizer | encoder | tasks | lacks |
|---|---|---|---|---|---|
"""
#: Arrays of heads and what they are called in the table; one name for all that only our encoder gives.
_HEADS = {"mlm_positions", "mlm_logits", "lm_logits", "logits", "start_logits", "end_logits"}
_INNER = ("query", "key", "value", "attention_scores", "context", "attention_output", "intermediate",
          "embedding_sum")


def row_of(family: Family, loaded: Loaded) -> str:
    """One line of the table."""
    lacks = [part for part in ALL_PARTS if part in loaded.gaps and part not in (*_HEADS, *INPUT_PARTS)]
    if set(_INNER) <= set(lacks):
        lacks = ["the inside of a layer", *(part for part in lacks if part not in _INNER)]
    tasks = ", ".join(loaded.info.tasks) or "hidden states"
    encoder = "ours" if family.ours else "adapter"
    shown = ", ".join(part.replace("_", " ") for part in lacks) or "nothing"
    return f"| {family.name} | {family.architecture} | {family.tokenizer} | {encoder} | {tasks} | {shown} |"


def main() -> None:
    """Write docs/loading.md."""
    rows = []
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row_of(family, load_model(str(make_family(Path(folder), family)))))
    TARGET.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
