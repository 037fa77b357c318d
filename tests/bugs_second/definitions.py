"""The references of the tasks of this folder, and what is good enough in single precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional


def row_softmax(x):
    """x [N, C] -> [N, C]."""
    return torch.softmax(x, dim=-1)


def group_norm(x, weight, bias, eps, G):  # noqa: N803 - names of dimensions
    """x [N, C, P] in G groups of channels, with the biased variance -> [N, C, P]."""
    groups = x.reshape(x.shape[0], G, -1)
    centred = groups - groups.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    normal = (centred / torch.sqrt(variance + eps)).reshape(x.shape)
    return normal * weight[:, None] + bias[:, None]


def gqa(q, k, v, scale, HQ, HKV):  # noqa: N803 - names of dimensions
    """q [B, HQ, S, D], k and v [B, HKV, S, D], causal; HQ / HKV query heads in a row share a head
    of keys -> [B, HQ, S, D].
    """
    keys = k.repeat_interleave(HQ // HKV, dim=1)
    values = v.repeat_interleave(HQ // HKV, dim=1)
    scores = q @ keys.transpose(-2, -1) * scale
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ values


def gqa_in_half(q, k, v, scale, HQ, HKV):  # noqa: N803 - names of dimensions
    """Rounded once, at the end."""
    return gqa(q.float(), k.float(), v.float(), scale, HQ, HKV).to(q.dtype)


def conv2d(x, weight, bias):
    """x [N, C, H, W], weight [K, C, 3, 3], one pixel of zeros around -> [N, K, H, W]."""
    return functional.conv2d(x, weight, bias, padding=1)


def row_scan(x):
    """x [N, L] -> the inclusive prefix sums of its rows, [N, L]."""
    return torch.cumsum(x, dim=-1)


def transpose_bias(x, bias):
    """x [B, M, N], bias [N] -> [B, N, M]."""
    return x.transpose(-2, -1) + bias[:, None]


def cross_entropy(logits, target):
    """logits [N, V], target [N] -> the loss of each row [N], and their mean [1]."""
    loss = torch.logsumexp(logits, dim=-1)
    loss = loss - logits.gather(1, target.long()[:, None])[:, 0]
    return loss, loss.mean().reshape(1)


def rotary(x, cosines, sines):
    """x [B, S, H, D], tables [S, D / 2]: element i is turned with i + D / 2 -> [B, S, H, D]."""
    first, second = x.chunk(2, dim=-1)
    c, s = cosines[:, None, :], sines[:, None, :]
    return torch.cat((first * c - second * s, second * c + first * s), dim=-1)


def rotary_in_half(x, cosines, sines):
    """Rounded once, at the end."""
    return rotary(x.float(), cosines, sines).to(x.dtype)


def batched_scores(a, b, alpha):
    """a [B, M, K], b [B, N, K] -> alpha * a @ b^T, [B, M, N]."""
    return a @ b.transpose(-2, -1) * alpha


def batched_scores_in_half(a, b, alpha):
    """Rounded once, at the end."""
    return batched_scores(a.float(), b.float(), alpha).to(a.dtype)


def scatter_add(source, index, V):  # noqa: N803 - names of dimensions
    """source [T, D], index [T] -> the sums of the rows with one index, [V, D]."""
    out = torch.zeros(V, source.shape[1], dtype=source.dtype, device=source.device)
    return out.index_add(0, index.long(), source)


def causal_conv1d(x, weight, bias):
    """x [B, C, L], weight [C, 4]: SiLU of the sum over element t and the three before -> [B, C, L]."""
    summed = functional.conv1d(
        functional.pad(x, (3, 0)), weight[:, None, :], bias, groups=x.shape[1]
    )
    return functional.silu(summed)
