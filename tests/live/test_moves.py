"""Moves in a byte for each number: small, and nearer to the weights than half precision."""

import torch

from bert_core.training.live.moves import STEP, pack, unpack


def test_moves_come_back_within_half_a_step_of_their_row():
    drawn = torch.Generator().manual_seed(0)
    moves = {"table": torch.randn(7, 5, generator=drawn) * torch.logspace(-9, 0, 7)[:, None],
             "bias": torch.randn(11, generator=drawn) * 1e-4, "still": torch.zeros(3, 4)}
    packed = pack(moves)
    assert {name: tensor.dtype for name, tensor in packed.items() if STEP not in name} == dict.fromkeys(
        moves, torch.int8)
    read = unpack(packed)
    assert read.keys() == moves.keys()
    for name, moved in moves.items():
        assert read[name].shape == moved.shape
        step = moved.flatten(1).abs().amax(dim=1) / 127 if moved.dim() > 1 else moved.abs() / 127
        off = (read[name] - moved).abs().reshape(len(moved), -1).amax(dim=1)
        assert (off <= 0.501 * step).all(), name


def test_a_small_move_is_kept_better_than_by_half_precision():
    drawn = torch.Generator().manual_seed(0)
    start = torch.randn(64, 64, generator=drawn) * 0.05
    moved = torch.randn(64, 64, generator=drawn) * 1e-3
    off = (start + unpack(pack({"w": moved}))["w"] - (start + moved)).abs().mean()
    assert off < (start + moved - (start + moved).half().float()).abs().mean()
