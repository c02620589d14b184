"""Model folders: config.json, model.safetensors and a tokenizer, as transformers reads them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from bert_core.config import BertConfig

ARCHITECTURE = {"mlm": "BertForPreTraining", "clm": "BertLMHeadModel", "rtl": "BertLMHeadModel"}


def find_tokenizer(run: Path, init: str) -> Path:
    """tokenizer.json of a run: its own, its start's, or the one the shipped models share beside their folders.

    Raises:
        ValueError: there is none.
    """
    for path in (run / "tokenizer.json", Path(init) / "tokenizer.json", Path(init).parent / "tokenizer.json"):
        if path.is_file():
            return path
    raise ValueError(f"--init {init!r} has no tokenizer.json")


def write_model(
    folder: Path, config: BertConfig, weights: Mapping[str, Tensor], objective: str, tokenizer: Path | None,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Write a pre-trained model's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = dataclasses.replace(
        config, model_type="bert", is_decoder=objective != "mlm", architectures=(ARCHITECTURE[objective],),
        reading_order="right-to-left" if objective == "rtl" else "left-to-right", extra={},
    )
    (folder / "config.json").write_text(json.dumps(config.to_dict(), indent=1) + "\n", encoding="utf-8")
    tensors = {n: w.detach().to("cpu", dtype).contiguous() for n, w in sorted(weights.items())}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if tokenizer is not None:
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
