"""The references of the tasks of this folder.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def softmax_rows(x):
    """x [N, C] -> softmax of its rows, [N, C]."""
    return torch.softmax(x, dim=-1)


def transpose(x):
    """x [M, N] -> [N, M]."""
    return x.t().contiguous()


def stencil(x, centre, side):
    """x [Z, Y, W], zero around it -> centre * x + side * (the sum of its six neighbours)."""
    z, y, w = x.shape
    around = torch.zeros(z + 2, y + 2, w + 2, dtype=x.dtype, device=x.device)
    around[1:-1, 1:-1, 1:-1] = x
    inner = slice(1, -1)
    sides = (
        around[:-2, inner, inner]
        + around[2:, inner, inner]
        + around[inner, :-2, inner]
        + around[inner, 2:, inner]
        + around[inner, inner, :-2]
        + around[inner, inner, 2:]
    )
    return centre * x + side * sides


def segment_sums(x, offsets):
    """x [T], offsets [S + 1] from 0 to T, ascending -> the sum of each segment, [S]."""
    places = torch.arange(len(x), device=x.device)
    segments = torch.searchsorted(offsets.long(), places, right=True) - 1
    sums = torch.zeros(len(offsets) - 1, dtype=x.dtype, device=x.device)
    return sums.index_add_(0, segments, x)


def lookup(table, tokens, positions, S):  # noqa: N803 - names of dimensions
    """table [V, D], tokens [T], positions [S, D]: row t is table[tokens[t]] + positions[t % S]."""
    rows = table[tokens.long()]
    at = torch.arange(len(tokens), device=table.device) % S
    return rows + positions[at]


def lookup_in_half(table, tokens, positions, S):  # noqa: N803 - names of dimensions
    """Rounded once, at the end."""
    return lookup(table.float(), tokens, positions.float(), S).to(table.dtype)


def eight_bit_product(codes, x):
    """codes [N, K] of e4m3 numbers, x [K] -> the sums of the products, [N]."""
    return codes.view(torch.float8_e4m3fn).to(x.dtype) @ x


def histogram(values, BINS):  # noqa: N803 - names of dimensions
    """values [T] below BINS -> how often each occurs, [BINS]."""
    return torch.bincount(values.long(), minlength=BINS).to(torch.int32)


def scan_rows(x):
    """x [N, L] -> the inclusive prefix sums of its rows, [N, L]."""
    return torch.cumsum(x, dim=-1)


def product(a, b):
    """a [M, K], b [K, N] -> [M, N]."""
    return a @ b


def gathered_scores(table, index, query):
    """table [V, D], index [T], query [D] -> the products of the rows with the query, [T]."""
    return table[index.long()] @ query
