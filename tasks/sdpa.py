"""Scaled dot-product attention: the reference, trusted implementations, and baselines.

q, k, v and the result are [B, H, S, D]; every function also takes scale (a float) and
causal (a bool; then query i sees keys 0..i).
"""

from itertools import product

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def forward(q, k, v, scale, causal):
    """The definition, in the precision of its inputs; run in float64 it is the reference.

    One head at a time: the scores of all heads at once take gigabytes in float64.
    """
    out = torch.empty_like(v)
    for batch, head in product(range(q.shape[0]), range(q.shape[1])):
        out[batch, head] = _one_head(q[batch, head], k[batch, head], v[batch, head], scale, causal)
    return out


def _one_head(q, k, v, scale, causal):
    """All three [S, D]."""
    scores = q @ k.transpose(-2, -1) * scale
    if causal:
        hidden = torch.ones(scores.shape, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def half(q, k, v, scale, causal):
    """torch's own attention in half precision: how far from float64 a trusted kernel is."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


def e4m3(q, k, v, scale, causal):
    """Exact attention over inputs rounded to e4m3 with one scale a head: the error that 8 bits cost."""
    return forward(_round(q), _round(k), _round(v), scale, causal)


def _round(x):
    """x [B, H, S, D] to e4m3 and back, in float64; scale = amax / 448, 1 for a head of zeros."""
    largest = x.float().abs().amax(dim=(-2, -1), keepdim=True)
    scale = torch.where(largest > 0, largest / 448.0, torch.ones_like(largest))  # 448: the largest e4m3 number
    return (x.float() / scale).to(torch.float8_e4m3fn).double() * scale.double()


def cudnn(q, k, v, scale, causal):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return half(q, k, v, scale, causal)


def flash(q, k, v, scale, causal):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return half(q, k, v, scale, causal)


def efficient(q, k, v, scale, causal):
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return half(q, k, v, scale, causal)
