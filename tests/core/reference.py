"""What transformers computes inside: every named intermediate, recorded by hooks on its modules.

The modules' names are the checkpoint's, so the family's Layout finds them.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch

from bert_core.config import BertConfig
from bert_core.layout import layout_for
from bert_core.tokenizer import Encoding


def open_reference(folder: str, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """The class that the folder's config.json names, eager attention, evaluation mode."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    known = {"XLMWithLMHeadModel", "FlaubertWithLMHeadModel"}
    name = config.architectures[0]
    assert hasattr(transformers, name) or name in known
    return getattr(transformers, name).from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()


def padded(encoding: Encoding, pad_id: int, extra: int) -> dict[str, torch.Tensor]:
    """The encoding as a batch of one, with `extra` padding tokens at its end."""
    length = len(encoding)
    return {
        "input_ids": torch.tensor([[*encoding.input_ids, *[pad_id] * extra]]),
        "token_type_ids": torch.tensor([[*encoding.token_type_ids, *[0] * extra]]),
        "attention_mask": torch.tensor([[1] * length + [0] * extra]),
    }


class Recorder:
    """Outputs and inputs of named modules, in the order in which they ran."""

    def __init__(self, module: torch.nn.Module, names: set[str]):
        self.outputs: dict[str, list[torch.Tensor]] = defaultdict(list)
        self.inputs: dict[str, list[torch.Tensor]] = defaultdict(list)
        self._handles = [module.get_submodule(name).register_forward_hook(self._keeper(name)) for name in names]

    def _keeper(self, name: str):
        def keep(_, args, output):
            self.inputs[name].append(args[0].detach())
            self.outputs[name].append(output.detach())
        return keep

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def reference_arrays(
    module: torch.nn.Module, config: BertConfig, encoding: Encoding, extra: int = 0
) -> dict[str, np.ndarray]:
    """Trace array -> transformers' value, without padding, for a family of our own encoder."""
    layout, roles = layout_for(config), set(layout_for(config).layer)
    layers = 1 if layout.shared_layers else config.num_hidden_layers
    names = {layout.of_layer(n, role) for n in range(layers) for role in roles}
    names |= {layout.word, layout.position, layout.embedding_norm}
    prefix = layout.prefix if hasattr(module, layout.prefix.rstrip(".")) else ""
    short = {name: prefix + name.removeprefix(layout.prefix) for name in names | {layout.segment} - {None}}
    recorder = Recorder(module, set(short.values()))
    given = padded(encoding, config.pad_token_id, extra)
    if layout.segment is None:
        del given["token_type_ids"]
    with torch.no_grad():
        out = module(**given, output_hidden_states=True, output_attentions=True)
    recorder.close()
    found = _layer_arrays(recorder, config, short, len(encoding))
    found |= _embedding_arrays(recorder, config, short, len(encoding))
    found["hidden_states"] = torch.stack(out.hidden_states)[:, 0, :len(encoding)]
    found["attention_probs"] = torch.stack(out.attentions)[:, 0, :, :len(encoding), :len(encoding)]
    return {name: array.numpy() for name, array in found.items()} | {"output": out}


def _layer_arrays(recorder: Recorder, config: BertConfig, short: dict[str, str], length: int) -> dict:
    layout, heads = layout_for(config), config.num_attention_heads

    def stacked(role: str, kind: str) -> torch.Tensor:
        """(L, T, width) of one role over the layers."""
        log, names = getattr(recorder, kind), [short[layout.of_layer(n, role)] for n in range(config.num_hidden_layers)]
        taken = [log[name][n if layout.shared_layers else 0] for n, name in enumerate(names)]
        return torch.stack(taken)[:, 0, :length]

    def by_head(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)  # (L, H, T, Dh)

    query, key, value = (by_head(stacked(role, "outputs")) for role in ("query", "key", "value"))
    return {
        "query": query, "key": key, "value": value,
        "attention_scores": torch.einsum("lhqd,lhkd->lhqk", query, key) / config.head_size**0.5,
        "context": stacked("attention_dense", "inputs"), "attention_output": stacked("attention_norm", "outputs"),
        "intermediate": stacked("output_dense", "inputs"),
    }


def _embedding_arrays(recorder: Recorder, config: BertConfig, short: dict[str, str], length: int) -> dict:
    layout = layout_for(config)
    tables = {"token_embeddings": layout.word, "position_embeddings": layout.position}
    if layout.segment is not None:
        tables["segment_embeddings"] = layout.segment
    found = {part: recorder.outputs[short[name]][0][0, :length] for part, name in tables.items()}
    found["embedding_sum"] = recorder.inputs[short[layout.embedding_norm]][0][0, :length]
    return found
