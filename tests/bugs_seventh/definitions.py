"""The references of the tasks of this folder, and how some of their inputs are drawn.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional


def powers_of_two(generator, shape):
    """Steps that divide without rounding: 1/64 to 1/4."""
    exponents = torch.randint(-6, -1, shape, generator=generator, device=generator.device)
    return torch.exp2(exponents.float())


def dominant(generator, shape):
    """Square matrices whose diagonals outweigh the rest: no solution grows."""
    values = torch.rand(shape, generator=generator, device=generator.device) * 2 - 1
    return values / shape[-1] ** 0.5 + 2 * torch.eye(shape[-1], device=generator.device)


def running_logsumexp(x):
    """x [N, L] -> the logarithm of the sum of the exponentials up to each element, [N, L]."""
    return torch.logcumsumexp(x, dim=-1)


def group_codes(x, steps, zeros):
    """x [N, K], a step and a zero for each group of a row -> codes of 8 bits and what they stand
    for, both [N, K].
    """
    group = x.shape[1] // steps.shape[1]
    step = steps.repeat_interleave(group, dim=1)
    zero = zeros.to(x.dtype).repeat_interleave(group, dim=1)
    codes = (torch.round(x / step) + zero).clamp(-128, 127)
    return codes, (codes - zero) * step


def lower_solve(a, b):
    """a [B, N, N], of which the lower triangle counts, b [B, N, R] -> x with a x = b."""
    return torch.linalg.solve_triangular(a, b, upper=False)


def grouped_linear_attention(q, k, v):
    """q [B, HQ, S, D], k and v [B, HKV, S, D]: each position weighs the values up to its own by
    products of features elu(x) + 1, and divides by the sum of weights -> [B, HQ, S, D].
    """
    groups = q.shape[1] // k.shape[1]
    x = functional.elu(q) + 1
    y = (functional.elu(k) + 1).repeat_interleave(groups, dim=1)
    weights = (x @ y.transpose(-2, -1)).tril()
    return weights @ v.repeat_interleave(groups, dim=1) / weights.sum(dim=-1, keepdim=True)


def response_norm(x, alpha, bias):
    """x [N, C, P] divided by (bias + alpha * mean of the squares of five channels) ** 0.75, with
    zeros beyond the first and the last channel -> [N, C, P].
    """
    squares = functional.pad(x * x, (0, 0, 2, 2))
    mean = squares.unfold(1, 5, 1).mean(dim=-1)
    return x / (bias + alpha * mean) ** 0.75
