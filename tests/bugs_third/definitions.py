"""The references of the tasks of this folder, and what is good enough in single precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def int8_linear(x, weight, zeros, scales, bias):
    """x [B, K], weight [N, K] of small integers; each group of 32 columns of a row of weights has a
    scale and a zero point [N, K / 32] -> x @ ((weight - zero) * scale)^T + bias, [B, N].
    """
    offsets = zeros.to(x.dtype).repeat_interleave(32, dim=1)
    factors = scales.to(x.dtype).repeat_interleave(32, dim=1)
    return x @ ((weight.to(x.dtype) - offsets) * factors).t() + bias


def rms_rotary(x, residual, weight, cosines, sines, position, eps, H, D):  # noqa: N803 - dimensions
    """x and residual [T, H * D] -> their sum, and its root-mean-square norm times `weight` with each
    pair of neighbours (2 i, 2 i + 1) of a head turned by the angle of the row's position, [T, H, D].
    """
    summed = x + residual
    inverse = torch.rsqrt((summed**2).mean(dim=-1, keepdim=True) + eps)
    normal = (summed * inverse * weight).reshape(-1, H, D // 2, 2)
    row = position.long()
    c, s = cosines[row][:, None, :], sines[row][:, None, :]
    first, second = normal[..., 0], normal[..., 1]
    turned = torch.stack((first * c - second * s, first * s + second * c), dim=-1)
    return summed, turned.reshape(-1, H, D)
