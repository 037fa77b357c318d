"""The references of the tasks of this folder.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional


def prefix_attention(q, k, v, scale):
    """q [B, H, S, D], k and v [B, H, T, D]: the queries are the last S of T positions, and each
    sees the keys up to its own position -> [B, H, S, D].
    """
    S, T = q.shape[-2], k.shape[-2]  # noqa: N806 - names of dimensions
    scores = q @ k.transpose(-2, -1) * scale
    hidden = torch.ones(S, T, dtype=torch.bool, device=q.device).triu(T - S + 1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def relu_gemm(a, b, bias):
    """a [M, K], b [K, N], bias [N] -> relu(a @ b + bias), [M, N]."""
    return torch.relu(a @ b + bias)


def residual_norm(x, residual, weight, bias, eps):
    """x and residual [N, D] -> the layer norm of their sum, and the sum."""
    total = x + residual
    centred = total - total.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * weight + bias, total


def grouped_gemv(codes, scales, x):
    """codes [N, K] of 8 bits, scales [N, K / GROUP], x [K] -> [N]."""
    group = codes.shape[1] // scales.shape[1]
    weights = codes.to(scales.dtype) * scales.repeat_interleave(group, dim=1)
    return weights @ x


def pair_rotary(x, cosines, sines):
    """x [T, H, D], tables [T, D / 2]: elements 2 i and 2 i + 1 are turned -> [T, H, D]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    c, s = cosines[:, None, :], sines[:, None, :]
    return torch.stack((even * c - odd * s, odd * c + even * s), dim=-1).flatten(-2)


def exclusive_scan(x):
    """x [N, L] -> the sums of what is before each element of a row, [N, L]."""
    return torch.cumsum(x, dim=-1) - x


def strided_depthwise(x, weight, bias):
    """x [N, C, H, W], weight [C, 1, 3, 3], stride 2, one pixel of zeros around."""
    return functional.conv2d(x, weight, bias, stride=2, padding=1, groups=x.shape[1])
