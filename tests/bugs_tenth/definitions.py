"""The references of the tasks of this folder.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional


def norm_backward(x, dy, weight, eps):
    """The gradients of layer normalisation of the rows of x [N, C] under dy [N, C]: of x, and of
    weight and bias [C].
    """
    mean = x.mean(dim=1, keepdim=True)
    inverse = 1 / torch.sqrt(((x - mean) ** 2).mean(dim=1, keepdim=True) + eps)
    normal, wanted = (x - mean) * inverse, dy * weight
    along = (wanted * normal).mean(dim=1, keepdim=True)
    dx = inverse * (wanted - wanted.mean(dim=1, keepdim=True) - normal * along)
    return dx, (dy * normal).sum(dim=0), dy.sum(dim=0)


def selective_scan(x, delta, z, a_log, b, c, skip, shift):
    """x, delta, z [B, T, C], a_log [C, S], b, c [B, T, S], skip, shift [C] -> the outputs
    [B, T, C] of a state of S numbers a channel and the last states [B, C, S]. A step of
    softplus(delta + shift) lets a state decay by exp(-step * exp(a_log)) and adds step * b * x;
    the output is what c reads from it, plus skip * x, times silu(z).
    """
    step = functional.softplus(delta + shift)
    decay = torch.exp(-step[..., None] * torch.exp(a_log))
    added = (step * x)[..., None] * b[:, :, None, :]
    state, read = torch.zeros_like(added[:, 0]), []
    for t in range(x.shape[1]):
        state = decay[:, t] * state + added[:, t]
        read.append((state * c[:, t, None, :]).sum(dim=-1))
    return (torch.stack(read, dim=1) + skip * x) * functional.silu(z), state


def transposed_conv(x, weight, bias, ST, P):  # noqa: N803 - dimensions
    """x [N, CI, H, W] -> its transposed convolution with weight [CI, CO, K, K] plus bias [CO]."""
    return functional.conv_transpose2d(x, weight, bias, stride=ST, padding=P)
