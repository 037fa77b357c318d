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


def grouped_attention(q, k, v):
    """q [HQ, S, 64], k and v [HQ / 4, S, 64] -> causal attention, [HQ, S, 64]."""
    k, v = k.repeat_interleave(4, dim=0), v.repeat_interleave(4, dim=0)
    scores = q @ k.transpose(-2, -1) / 8
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def grouped_attention_in_half(q, k, v):
    """Probabilities rounded to half precision."""
    k, v = k.float().repeat_interleave(4, dim=0), v.float().repeat_interleave(4, dim=0)
    scores = q.float() @ k.transpose(-2, -1) / 8
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
    return (weights.to(q.dtype).float() @ v).to(q.dtype)


def paged_attention(q, k, v, table, B, PAGES):  # noqa: N803 - names of dimensions
    """q [B, 8, 128]; page i of sequence b is k[table[b * PAGES + i]], [2, 16, 128]: [B, 8, 128]."""
    pages = table.long().reshape(B, PAGES)
    keys = k[pages].transpose(1, 2).reshape(B, 2, PAGES * 16, 128)
    values = v[pages].transpose(1, 2).reshape(B, 2, PAGES * 16, 128)
    grouped = q.reshape(B, 2, 4, 128)
    weights = torch.softmax(grouped @ keys.transpose(-2, -1) / 128**0.5, dim=-1)
    return (weights @ values).reshape(B, 8, 128)


def paged_attention_in_half(q, k, v, table, B, PAGES):  # noqa: N803 - names of dimensions
    """Rounded once, at the end."""
    return paged_attention(q.float(), k.float(), v.float(), table, B, PAGES).to(q.dtype)


def gelu_layer(x, w, shifts):
    """x [M, K], w [N, K], shifts [N] -> gelu(x @ w.T + shifts), [M, N]."""
    return torch.nn.functional.gelu(x @ w.t() + shifts, approximate="tanh")


def gelu_layer_in_half(x, w, shifts):
    """Rounded once, at the end."""
    return gelu_layer(x.float(), w.float(), shifts.float()).to(x.dtype)


def normalised_gradient(x, dy, weights, mean, factor):
    """Of x [N, C], dy [N, C], with mean and factor [N] of the rows: [N, C], [C] and [C]."""
    normal = (x - mean[:, None]) * factor[:, None]
    weighted = dy * weights
    sums = weighted.mean(dim=-1, keepdim=True), (weighted * normal).mean(dim=-1, keepdim=True)
    dx = factor[:, None] * (weighted - sums[0] - normal * sums[1])
    return dx, (dy * normal).sum(dim=0), dy.sum(dim=0)


def kth_largest(x, K):  # noqa: N803 - names of dimensions
    """x [N, C] -> the K-th largest of each row, [N]."""
    return torch.topk(x, K, dim=-1).values[:, -1].contiguous()


def channel_convolution(x, filters):
    """x [B, H, W, C], filters [F, 3, 3, C] -> [B, H, W, F]."""
    image, weights = x.permute(0, 3, 1, 2), filters.permute(0, 3, 1, 2)
    found = torch.nn.functional.conv2d(image, weights, padding=1)
    return found.permute(0, 2, 3, 1).contiguous()


def channel_convolution_in_half(x, filters):
    """Rounded once, at the end."""
    return channel_convolution(x.float(), filters.float()).to(x.dtype)


def max_pool(x):
    """x [B, C, H, W] -> the largest of each 3 x 3, two apart, [B, C, H / 2, W / 2]."""
    return torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1)


def head_transpose(x):
    """x [B, S, H, D] -> [B, H, D, S]."""
    return x.permute(0, 2, 3, 1).contiguous()


def scatter_rows(x, places, weights):
    """x [T, D], a permutation [T], weights [T]: row t times its weight goes to places[t], [T, D]."""
    out = torch.empty_like(x)
    out[places.long()] = x * weights[:, None]
    return out


def scatter_rows_in_half(x, places, weights):
    """Rounded once, at the end."""
    return scatter_rows(x.float(), places, weights).to(x.dtype)


def table_gradient(dy, tokens, V):  # noqa: N803 - names of dimensions
    """dy [T, D], tokens [T] below V -> the sums of the rows of each token, [V, D]."""
    table = torch.zeros(V, dy.shape[1], dtype=dy.dtype, device=dy.device)
    return table.index_add_(0, tokens.long(), dy)


def compact(x):
    """x [T] -> its positive numbers, then zeros, [T], and how many are positive, [1]."""
    kept = x[x > 0]
    out = torch.zeros_like(x)
    out[: len(kept)] = kept
    return out, torch.tensor([len(kept)], dtype=torch.int32, device=x.device)


def digit_sort(keys):
    """keys [T] -> by their lowest four bits, otherwise in their order, [T]."""
    return keys[torch.sort(keys.long() & 15, stable=True).indices]


def blur(x, weights):
    """x [H, W], weights [5] along rows and columns -> [H, W]."""
    image = x[None, None]
    along = torch.nn.functional.conv2d(image, weights.reshape(1, 1, 1, 5), padding=(0, 2))
    return torch.nn.functional.conv2d(along, weights.reshape(1, 1, 5, 1), padding=(2, 0))[0, 0]


def eight_bit_rows(x):
    """x [N, C] -> round(x / scale), [N, C], and the scales, [N]."""
    scales = x.abs().amax(dim=-1) / 127
    codes = torch.round(x / scales[:, None]).to(torch.int8)
    return codes, scales


def eight_bit_rows_in_single(x):
    """In single precision."""
    return eight_bit_rows(x.float())


def weights_of_bytes(x, codes, scales):
    """x [16, K], codes [N, K], scales [N] -> x @ codes.T * scales, [16, N]."""
    return (x @ codes.to(x.dtype).t()) * scales


def weights_of_bytes_in_half(x, codes, scales):
    """Rounded once, at the end."""
    return weights_of_bytes(x.float(), codes, scales).to(x.dtype)


def gated_rows(x):
    """x [N, 2 F] -> silu(the first half) * the second half, [N, F]."""
    first, second = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(first) * second


def gated_rows_in_half(x):
    """Rounded once, at the end."""
    return gated_rows(x.float()).to(x.dtype)


def nearest(points, centres):
    """points [N, D], centres [K, D] -> the least squared distance of each point, [N]."""
    least = torch.full_like(points[:, 0], float("inf"))
    for centre in centres:
        least = torch.minimum(least, (points - centre).square().sum(dim=-1))
    return least


def bodies(at):
    """at [N, 4]: x, y, z, mass -> sums of d * m / r^3 and of m / r, r^2 = d^2 + 0.01, [N, 4]."""
    found = []
    for some in at.split(256):
        d = at[None, :, :3] - some[:, None, :3]
        inverse = torch.rsqrt(d.square().sum(dim=-1) + 0.01)
        potential = at[None, :, 3] * inverse
        pull = (d * (potential * inverse * inverse)[..., None]).sum(dim=1)
        found.append(torch.cat([pull, potential.sum(dim=1, keepdim=True)], dim=-1))
    return torch.cat(found)


def enlarge(x):
    """x [P, H, W] -> [P, 2 H, 2 W]."""
    doubled = torch.nn.functional.interpolate(x[None], scale_factor=2, mode="bilinear")
    return doubled[0]


def lower_bounds(ordered, wanted):
    """ordered [V], ascending, wanted [T] -> the first place that is not below, [T]."""
    return torch.searchsorted(ordered.long(), wanted.long()).to(torch.int32)
