"""Attention, as kernels with one mistake compute it: float64 outputs of inputs and scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from evoengine.evaluate.worker.inputs import Tensors
from tests.evaluate.worker.forensics.mutated import UNWRITTEN, Mutant, Scalars

Weights = Callable[[torch.Tensor], torch.Tensor]


def attention(tensors: Tensors, scalars: Scalars, **other: Any) -> torch.Tensor:
    """The definition with some of q, k, v, scale, causal, weights, diagonal replaced."""
    q, k, v = (other.get(name, tensors[name]) for name in "qkv")
    scores = q @ k.mT * other.get("scale", scalars["scale"])
    if other.get("causal", scalars["causal"]):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(other.get("diagonal", 1))
        scores = scores.masked_fill(hidden, -math.inf)
    weights: Weights = other.get("weights", lambda given: given.softmax(-1))
    return weights(scores) @ v


def with_weights(weights: Weights) -> Mutant:
    return lambda tensors, scalars: attention(tensors, scalars, weights=weights)


def online(tile: int, rescales_sum: bool) -> Weights:
    """An online softmax whose accumulator is never rescaled."""

    def weights(scores: torch.Tensor) -> torch.Tensor:
        running = torch.full_like(scores[..., :1], -math.inf)
        own = []
        for part in scores.split(tile, -1):
            running = torch.maximum(running, part.amax(-1, keepdim=True))
            own.append((part - running).exp())
        powers = torch.cat(own, -1)
        counted = (scores - running).exp() if rescales_sum else powers
        return powers / counted.sum(-1, keepdim=True)

    return weights


def unnormalised(scores: torch.Tensor) -> torch.Tensor:
    return (scores - scores.amax(-1, keepdim=True)).exp()


def halves(scores: torch.Tensor) -> torch.Tensor:
    """Two parts with maxima and sums of their own, averaged."""
    return torch.cat([part.softmax(-1) for part in scores.chunk(2, -1)], -1) / 2


def e4m3_weights(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(-1).to(torch.float8_e4m3fn).double()


def band_left_out(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
    """Rows 56 to 63 of every 64 are written by no warp."""
    out = attention(tensors, scalars)
    out[:, :, torch.arange(out.shape[2]) % 64 >= 56] = UNWRITTEN
    return out


def mask_missing_at_the_end(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
    """Rows from 64 on see every key."""
    right, whole = attention(tensors, scalars), attention(tensors, scalars, causal=False)
    return torch.cat([right[:, :, :64], whole[:, :, 64:]], 2)


def padding_counted(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
    """Keys of zeros fill up the last tile of 32 and count in the sum."""

    def filled(value: torch.Tensor) -> torch.Tensor:
        more = -value.shape[2] % 32
        return torch.cat([value, value.new_zeros(*value.shape[:2], more, value.shape[3])], 2)

    return attention(tensors, scalars, k=filled(tensors["k"]), v=filled(tensors["v"]))
