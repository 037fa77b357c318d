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


def scatter_sums(x, index, V):  # noqa: N803 - names of dimensions
    """x [T], index [T] below V -> the sum of the numbers of each place, [V]."""
    return torch.zeros(V, dtype=x.dtype, device=x.device).index_add_(0, index.long(), x)


def count_positive(x):
    """x [T] -> how many are above zero, [1]."""
    return (x > 0).sum().to(torch.int32).reshape(1)


def scan_long(x):
    """x [T] of integers -> its inclusive prefix sums, [T]."""
    return torch.cumsum(x.long(), dim=0).to(torch.int32)


def norm(x):
    """x [T] -> the root of the sum of its squares, [1]."""
    return x.square().sum().sqrt().reshape(1)


def sort_rows(x):
    """x [N, C] -> each row in ascending order, [N, C]."""
    return torch.sort(x, dim=-1).values


def csr_product(offsets, columns, values, x, R, NNZ):  # noqa: N803 - names of dimensions
    """Row r has values[i] in columns[i] for i from offsets[r] to offsets[r + 1]; times x [C]: [R]."""
    places = torch.arange(NNZ, device=x.device)
    rows = torch.searchsorted(offsets.long(), places, right=True) - 1
    sums = torch.zeros(R, dtype=x.dtype, device=x.device)
    return sums.index_add_(0, rows, values * x[columns.long()])


def gather(table, index):
    """table [V], index [T] -> table[index], [T]."""
    return table[index.long()]


def depthwise(x, filters, C):  # noqa: N803 - names of dimensions
    """x [B, C, H, W], filters [C, 3, 3] -> each channel with its own filter, [B, C, H, W]."""
    return torch.nn.functional.conv2d(x, filters[:, None], padding=1, groups=C)


def convolution(x, filters):
    """x [B, C, H, W], filters [F, C, 3, 3] -> [B, F, H, W]."""
    return torch.nn.functional.conv2d(x, filters, padding=1)


def product_vector(a, x):
    """a [N, K], x [K] -> [N]."""
    return a @ x


def product_vector_in_single(a, x):
    """In the precision of x."""
    return a.float() @ x.float()


def recurrence(decay, x):
    """decay [L, N], x [L, N] -> h[t] = decay[t] * h[t - 1] + x[t] from zero, [L, N]."""
    h, found = torch.zeros_like(x[0]), []
    for factor, more in zip(decay, x, strict=True):
        h = factor * h + more
        found.append(h)
    return torch.stack(found)


def damped_waves(times, damping, frequency):
    """times [T], damping [K], frequency [K] -> the sum of the waves at each time, [T]."""
    sums = torch.zeros_like(times)
    for rate, turns in zip(damping, frequency, strict=True):
        sums += torch.exp(-rate * times) * torch.sin(turns * times)
    return sums


def hamming(codes, others):
    """codes [N, 8], others [Q, 8] -> the fewest differing bits of each code, [N]."""
    least = torch.full((len(codes),), 256, dtype=torch.int32, device=codes.device)
    for other in others:
        words = torch.bitwise_xor(codes, other).long() & 0xFFFFFFFF
        bits = sum((words >> shift & 1) for shift in range(32)).sum(dim=-1)
        least = torch.minimum(least, bits.to(torch.int32))
    return least


def polynomial(x, factors):
    """x [T], factors [K], the highest power first -> the polynomial at each place, [T]."""
    value = torch.zeros_like(x)
    for factor in factors:
        value = value * x + factor
    return value


def int8_product(a, b):
    """a [M, K], b [N, K] of integers -> a times the transposition of b, [M, N]."""
    return (a.double() @ b.double().t()).to(torch.int32)


def cubes(x):
    """x [10, 10, B] -> the third power of each matrix, [10, 10, B]."""
    matrices = x.permute(2, 0, 1)
    return (matrices @ matrices @ matrices).permute(1, 2, 0).contiguous()


def row_sums(x):
    """x [N, C] -> the sum of each row, [N]."""
    return x.sum(dim=-1)
