"""AdamW with BERT's parameter groups, Muon for the matrices, and the learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT


def learning_rate_factor(step: int, steps: int, warmup: int, decay: int) -> float:
    """Linear rise over `warmup` steps, 1, then linear fall to 0 over the last `decay` steps.

    With a flat middle the number of steps may still be chosen while it lasts.

    Args:
        step: counts from 0.
    """
    rise = (step + 1) / max(1, warmup)
    fall = (steps - step) / max(1, decay)
    return max(0.0, min(1.0, rise, fall))


def decays(name: str) -> bool:
    """Whether weight decay applies: to matrices; not to biases, LayerNorms and the factors of low-rank updates.

    The factors' names end in .low_rank_in and .low_rank_out; what ships was trained without a decay of them.
    """
    return name.endswith(".weight") and "LayerNorm" not in name


def is_head(name: str) -> bool:
    """Whether a parameter learns at the heads' rate: all of a head, wherever it starts from, but the pooler's none."""
    return name.startswith(("cls.", "classifier", "qa_outputs"))


def adamw(
    weights: Mapping[str, Tensor], lr: float, head_lr: float, weight_decay: float = 0.01
) -> torch.optim.AdamW:
    """AdamW over the weights that require grad, in name order.

    Args:
        lr: peak learning rate of the encoder.
        head_lr: peak learning rate of the heads.
    """
    groups: dict[tuple[bool, bool], list[Tensor]] = {}
    for name in sorted(weights):
        if weights[name].requires_grad:
            groups.setdefault((is_head(name), decays(name)), []).append(weights[name])
    return torch.optim.AdamW(
        [
            {"params": params, "lr": head_lr if head else lr, "peak_lr": head_lr if head else lr,
             "weight_decay": weight_decay if decay else 0.0}
            for (head, decay), params in sorted(groups.items())
        ],
        betas=(0.9, 0.98), fused=True,
    )


class Together:
    """Optimisers that share a model's weights between them, used as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for part in self.parts for group in part.param_groups]

    @property
    def state(self) -> dict[Tensor, dict[str, Tensor]]:
        """Weight -> its state, in the optimiser it belongs to; made empty where there is none yet."""
        return {weight: part.state[weight] for part in self.parts for g in part.param_groups for weight in g["params"]}

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none)


class StackedMuon(torch.optim.Muon):
    """torch's Muon with `match_rms_adamw`, matrices of one shape in one product.

    Thirty-six matrices of 384 x 384 and 384 x 1,536 are eight hundred small
    calls in turn, and a GPU waits for most of them.
    """

    def __init__(self, params: ParamsT, lr: float, weight_decay: float) -> None:
        super().__init__(params, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the weights that have a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    alike.setdefault(weight.shape, []).append(weight)
            for weights in alike.values():
                self._update(weights, group)

    def _update(self, weights: Sequence[Tensor], group: Mapping[str, Any]) -> None:
        """The lines of torch's `_single_tensor_muon`, for weights of one shape."""
        lr, momentum = group["lr"], group["momentum"]
        gradients = [weight.grad for weight in weights]
        for weight in weights:
            if "momentum_buffer" not in self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight.grad)
        buffers = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(buffers, gradients, 1 - momentum)
        updates = torch.stack(torch._foreach_lerp(gradients, buffers, momentum))  # (N, A, B), Nesterov's
        turned = orthogonalised(updates, group["ns_coefficients"], group["ns_steps"], group["eps"])
        torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
        scale = 0.2 * lr * math.sqrt(max(updates.shape[1:]))
        torch._foreach_add_(weights, list(turned.to(updates.dtype).unbind()), alpha=-scale)


def orthogonalised(
    matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Each of (N, A, B) near its closest orthogonal matrix: Newton-Schulz iterations in bf16 (Jordan et al. 2024)."""
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    found = (matrices.mT if tall else matrices).bfloat16()
    found = found / found.flatten(1).norm(dim=1).clamp(min=eps)[:, None, None]
    for _ in range(steps):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if tall else found


def muon(weights: Mapping[str, Tensor], lr: float, head_lr: float, weight_decay: float = 0.01) -> Together:
    """Muon (Jordan et al. 2024) for the matrices of the encoder's layers, AdamW for all else.

    An update of Muon is scaled to the root mean square of one of AdamW's (Liu
    et al. 2025, arXiv 2502.16982, section 2.2), so that one rate serves both.

    Args:
        lr: peak learning rate of the encoder.
        head_lr: peak learning rate of the heads.
    """
    matrices = {n for n, w in weights.items() if n.startswith("bert.encoder.") and w.dim() == 2 and w.requires_grad}
    rest = {n: w for n, w in weights.items() if n not in matrices}
    group = {"params": [weights[n] for n in sorted(matrices)], "peak_lr": lr}
    first = StackedMuon([group], lr, weight_decay)
    return Together(first, adamw(rest, lr, head_lr, weight_decay))


#: What `--optimizer` names.
OPTIMIZERS = {"adamw": adamw, "muon": muon}


def set_learning_rate(optimizer: torch.optim.Optimizer | Together, factor: float) -> None:
    """Give every group its peak rate times `factor`."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * factor


def clip_gradients(weights: Mapping[str, Tensor], limit: float) -> float:
    """Scale all gradients so that their joint norm is at most `limit`; the norm before.

    Raises:
        ValueError: it is no number.
    """
    return finite(float(clip_on_device(weights, limit)))


def clip_on_device(weights: Mapping[str, Tensor], limit: float) -> Tensor:
    """The same without waiting for the norm, (), which nobody has looked at yet."""
    return torch.nn.utils.clip_grad_norm_([w for w in weights.values() if w.grad is not None], limit)


def finite(norm: float) -> float:
    """A gradient norm; ValueError if it is no number."""
    if not math.isfinite(norm):
        raise ValueError(f"the gradient norm is {norm}: training has diverged; lower the learning rate")
    return norm
