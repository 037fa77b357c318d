"""The references of the tasks of this folder, and what is good enough in half precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def gated_projection(x, gate, up):
    """x [M, K], gate and up [N, K] -> silu(x gate^T) * (x up^T), [M, N]."""
    return torch.nn.functional.silu(x @ gate.T) * (x @ up.T)


def gated_half(x, gate, up):
    """Products summed in single precision and rounded, as two calls of a library leave them."""
    gates, ups = ((x.float() @ matrix.float().T).half() for matrix in (gate, up))
    return (torch.nn.functional.silu(gates.float()) * ups.float()).half()


def rms_gradients(x, weight, grad, eps):
    """x and grad [N, C], weight [C] -> the gradients of x [N, C] and of weight [C] where grad is
    that of x / sqrt(mean(x^2) + eps) * weight.
    """
    inverse = 1 / torch.sqrt((x * x).mean(dim=1, keepdim=True) + eps)
    slopes = grad * weight
    pull = (slopes * x).mean(dim=1, keepdim=True) * inverse**3
    return slopes * inverse - x * pull, (grad * x * inverse).sum(dim=0)


def marked_products(x, marks):
    """x [N, L], marks [N, L] -> products from the last mark (or the first place) to each, [N, L]."""
    out = torch.empty_like(x)
    running = torch.ones_like(x[:, 0])
    for place in range(x.shape[1]):
        running = torch.where(marks[:, place].bool(), x[:, place], running * x[:, place])
        out[:, place] = running
    return out
