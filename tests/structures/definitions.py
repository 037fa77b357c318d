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


def product_in_half(a, b):
    """Products summed in single precision, rounded once."""
    return (a.float() @ b.float()).to(a.dtype)


def top_k(x):
    """x [N, C] -> the eight largest of each row, the largest first, [N, 8]."""
    return torch.topk(x, 8, dim=-1).values


def argmax(x):
    """x [N, C] -> the place of the largest of each row, [N]."""
    return torch.argmax(x, dim=-1).to(torch.int32)


def rotary(x, cosine, sine):
    """x [T, H, D], cosine and sine [T, D / 2]: pairs (i, i + D / 2) of each head turned, [T, H, D]."""
    first, second = x.chunk(2, dim=-1)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def rotary_in_half(x, cosine, sine):
    """Rounded once, at the end."""
    return rotary(x.float(), cosine, sine).to(x.dtype)


def rms_norm(x, weights):
    """x [N, C], weights [C] -> rows over the root of their mean square, times the weights."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * weights


def rms_norm_in_half(x, weights):
    """Rounded once, at the end."""
    return rms_norm(x.float(), weights.float()).to(x.dtype)


def four_bit_product(codes, scales, x):
    """codes [N, K / 2], the lower 4 bits first, scales [N, K / 64] of (code - 8), x [K] -> [N]."""
    both = torch.stack([codes.long() & 15, codes.long() >> 4], dim=-1).flatten(1) - 8
    weights = both.to(x.dtype) * scales.to(x.dtype).repeat_interleave(64, dim=1)
    return weights @ x


def cross_entropy(logits, targets):
    """logits [N, C], targets [N] -> the loss of each row, [N]."""
    return torch.nn.functional.cross_entropy(logits, targets.long(), reduction="none")


def cross_entropy_in_single(logits, targets):
    """In single precision."""
    return cross_entropy(logits.float(), targets)


def scatter_max(x, index, V):  # noqa: N803 - names of dimensions
    """x [T], index [T] below V -> the largest of each place, zero at least, [V]."""
    largest = torch.zeros(V, dtype=x.dtype, device=x.device)
    return largest.scatter_reduce_(0, index.long(), x, "amax")


def group_norm(x, weights, shifts):
    """x [B, G, 8, P], weights and shifts [G, 8] -> every [8, P] normalised, [B, G, 8, P]."""
    mean = x.mean(dim=(2, 3), keepdim=True)
    variance = (x - mean).square().mean(dim=(2, 3), keepdim=True)
    normal = (x - mean) * torch.rsqrt(variance + 1e-5)
    return normal * weights[None, :, :, None] + shifts[None, :, :, None]


def causal_convolution(x, filters):
    """x [B, T, C], filters [C, 4], the oldest first -> y * sigmoid(y), [B, T, C]."""
    before = torch.nn.functional.pad(x, (0, 0, 3, 0))
    y = sum(before[:, i : i + x.shape[1]] * filters[:, i] for i in range(4))
    return y * torch.sigmoid(y)


def causal_convolution_in_half(x, filters):
    """Rounded once, at the end."""
    return causal_convolution(x.float(), filters).to(x.dtype)


def gelu_network(x, up, down):
    """x [M, 64], up [64, F], down [F, 64] -> gelu(x @ up) @ down, [M, 64]."""
    return torch.nn.functional.gelu(x @ up, approximate="tanh") @ down


def gelu_network_in_half(x, up, down):
    """The inner numbers rounded to half precision, sums in single precision."""
    inner = torch.nn.functional.gelu(x.float() @ up.float(), approximate="tanh").to(x.dtype)
    return (inner.float() @ down.float()).to(x.dtype)


def cached_attention(q, k, v):
    """q [B, 64], k and v [B, S, 64] -> attention of one query each, [B, 64]."""
    scores = torch.einsum("bd,bsd->bs", q, k) / 8
    return torch.einsum("bs,bsd->bd", torch.softmax(scores, dim=-1), v)


def cached_attention_in_half(q, k, v):
    """Rounded once, at the end."""
    return cached_attention(q.float(), k.float(), v.float()).to(q.dtype)


def ell_product(columns, values, x):
    """columns and values [W, R], x [C] -> the sum of values * x[columns] of each row, [R]."""
    return (values * x[columns.long()]).sum(dim=0)


def column_sums(x):
    """x [L, N] -> the sum of each column, [N]."""
    return x.sum(dim=0)


def walks(after, begins, STEPS):  # noqa: N803 - names of dimensions
    """after [V], begins [T] -> the places after so many steps, [T]."""
    places = begins.long()
    for _ in range(STEPS):
        places = after[places].long()
    return places.to(torch.int32)


def filter_rows(x):
    """x [N, T] -> y[t] = x[t] + 0.5 * y[t - 1] - 0.25 * y[t - 2] from zero, [N, T]."""
    last, before, found = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for more in x.unbind(dim=1):
        last, before = more + 0.5 * last - 0.25 * before, last
        found.append(last)
    return torch.stack(found, dim=1)


def collatz(numbers):
    """numbers [T] from 1 on -> their steps to 1, [T]."""
    n, steps = numbers.long().clone(), torch.zeros_like(numbers, dtype=torch.int32)
    while bool((left := n != 1).any()):
        steps += left
        n = torch.where(left, torch.where(n % 2 == 0, n // 2, 3 * n + 1), n)
    return steps


def hashes(x):
    """x [T] -> mixed sixteen times, as integers of 32 bits, [T]."""
    word = 0xFFFFFFFF
    h = x.long() & word
    for _ in range(16):
        h = ((h ^ h >> 16) * 0x85EBCA6B) & word
        h = ((h ^ h >> 13) * 0xC2B2AE35) & word
        h = (h << 5 | h >> 27) & word
    return torch.where(h >= 1 << 31, h - (1 << 32), h).to(torch.int32)


def edit_distance(words, others):
    """words and others [B, 32] -> the distance of each pair, [B]."""
    length = words.shape[1]
    row = [torch.full_like(words[:, 0], i) for i in range(length + 1)]
    for i in range(length):
        below = [torch.full_like(words[:, 0], i + 1)]
        for j in range(length):
            exchanged = row[j] + (words[:, i] != others[:, j]).to(row[j].dtype)
            changed = torch.minimum(row[j + 1], below[j]) + 1
            below.append(torch.minimum(exchanged, changed))
        row = below
    return row[length].to(torch.int32)


def axpy(x, y, factor):
    """x [T], y [T] -> factor * x + y, [T]."""
    return factor * x + y


def heat(x, rate):
    """x [H, W], zero around it -> after four steps, [H, W]."""
    for _ in range(4):
        around = torch.nn.functional.pad(x, (1, 1, 1, 1))
        sides = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
        x = x + rate * (sides - 4 * x)
    return x
