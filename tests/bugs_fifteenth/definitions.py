"""The references of the tasks of this folder, and what is good enough in half precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def int8_product(a, b, row_scale, column_scale, bias):
    """Codes a [M, K] and b [N, K], a scale for each row of a [M] and of b [N], bias [N] ->
    [M, N].
    """
    wide = row_scale.dtype
    products = a.to(wide) @ b.to(wide).T
    return products * row_scale[:, None] * column_scale + bias


def int8_half(a, b, row_scale, column_scale, bias):
    """Single precision within, rounded once."""
    return int8_product(a, b, row_scale, column_scale, bias.float()).half()


def edge_softmax(left, right, source, offsets, slope):
    """left and right [NODES, H], the source of each edge [E], the edges of node n from offsets[n]
    to offsets[n+1] - 1 -> the softmax of their scores over the edges of a node [E, H].
    """
    nodes, heads = right.shape
    counts = (offsets[1:] - offsets[:-1]).long()
    node = torch.repeat_interleave(torch.arange(nodes, device=left.device), counts)
    scores = torch.nn.functional.leaky_relu(left[source.long()] + right[node], slope)
    index = node[:, None].expand(-1, heads)
    low = torch.full_like(right, float("-inf"))
    top = low.scatter_reduce(0, index, scores, "amax")
    powers = torch.exp(scores - top[node])
    return powers / torch.zeros_like(right).index_add(0, node, powers)[node]


def cosine_pairs(x, y, log_scale, eps):
    """x [M, D], y [N, D] -> exp(log_scale) times the cosines between their rows [M, N]; no row
    counts as shorter than eps.
    """
    lengths = [rows.norm(dim=1).clamp_min(eps) for rows in (x, y)]
    factor = torch.exp(torch.tensor(log_scale, dtype=x.dtype, device=x.device))
    return factor * (x @ y.T) / (lengths[0][:, None] * lengths[1])


def cosine_half(x, y, log_scale, eps):
    """Single precision within, rounded once."""
    return cosine_pairs(x.float(), y.float(), log_scale, eps).half()


def bin_counts(x, low, high, BINS):  # noqa: N803 - a dimension of the task
    """x [N, C] -> how many values of each column lie in each of BINS equal bins from low to high,
    and their sums, [C, BINS] both. The first and the last bin also have what lies outside.
    """
    places = torch.floor((x - low) * (BINS / (high - low))).clamp(0, BINS - 1).long().T
    zeros = torch.zeros(x.shape[1], BINS, dtype=x.dtype, device=x.device)
    counts = zeros.scatter_add(1, places, torch.ones_like(x).T)
    return counts.int(), zeros.scatter_add(1, places, x.T)


def token_masks(generator, shape):
    """Six of ten tokens, at random; two of the second sequence and none of the last."""
    mask = torch.rand(shape, generator=generator, device=generator.device) < 0.6
    mask[1] = False
    mask[1, 1:3] = True
    mask[-1] = False
    return mask


def masked_pool(x, mask):
    """x [B, S, C], mask [B, S] -> mean and maximum over the tokens that the mask keeps, [B, C]
    both, zeros for a sequence of which it keeps none.
    """
    kept = mask.bool()[:, :, None]
    count = kept.sum(dim=1)
    mean = torch.where(kept, x, 0).sum(dim=1) / count.clamp_min(1)
    peak = torch.where(kept, x, float("-inf")).amax(dim=1)
    return mean, torch.where(count > 0, peak, 0)
