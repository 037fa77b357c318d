"""The references of the tasks of this folder, and how some of their inputs are drawn.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional

# the two kept places of a group of four, the first below the second
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def pairs_of_places(generator, shape):
    """Bytes of two groups: of each group the first place in two bits, then the second."""
    codes = torch.tensor([first | second << 2 for first, second in PAIRS], device=generator.device)
    drawn = torch.randint(6, (*shape, 2), generator=generator, device=generator.device)
    groups = codes[drawn]
    return (groups[..., 0] | groups[..., 1] << 4).to(torch.uint8)


def glu_backward(x, grad):
    """x [N, 2 H], of which the first half gates the second, grad [N, H] of silu(gate) * up -> the
    gradient of x and its sums over the rows [2 H].
    """
    gate, up = x.chunk(2, dim=1)
    sigmoid = torch.sigmoid(gate)
    of_gate = grad * up * sigmoid * (1 + gate * (1 - sigmoid))
    dx = torch.cat([of_gate, grad * gate * sigmoid], dim=1)
    return dx, dx.sum(dim=0)


def sparse_product(x, values, places, bias):
    """x [M, K], values [N, K / 2] at their places in groups of four -> x weight^T + bias [M, N]."""
    bits = places.to(torch.int64)
    groups = torch.stack([bits & 15, bits >> 4], dim=-1).flatten(1)
    index = torch.stack([groups & 3, groups >> 2], dim=-1)
    pairs = values.reshape(*groups.shape, 2)
    weight = torch.zeros(*groups.shape, 4, dtype=values.dtype, device=values.device)
    weight = weight.scatter(-1, index, pairs).flatten(1)
    return x @ weight.T + bias


def average_pool(x, KERNEL, STRIDE, PAD, count_pad):  # noqa: N803
    """x [N, C, H, W] -> the mean of every window of KERNEL x KERNEL; what is padded counts as zeros
    with `count_pad`, and not at all without.
    """
    return functional.avg_pool2d(x, KERNEL, STRIDE, PAD, count_include_pad=bool(count_pad))
