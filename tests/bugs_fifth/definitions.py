"""The references of the tasks of this folder, and what is good enough in single precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def paged_decode(q, k_pages, v_pages, table, lengths, slopes, scale):
    """One query a sequence, q [B, KV * G, D], over the keys of its pages -> [B, KV * G, D].

    k_pages and v_pages are [P, PAGE, KV, D], table [B, MAXP] has the pages of each sequence in
    order, of which lengths [B] positions are used; slopes [KV * G] lower the scores of old keys.
    """
    batch, heads, width = q.shape
    groups = heads // k_pages.shape[2]
    keys, values = (
        pages[table.long()].flatten(1, 2).repeat_interleave(groups, dim=2)
        for pages in (k_pages, v_pages)
    )
    place = torch.arange(keys.shape[1], device=q.device)[None, None, :]
    last = (lengths.long() - 1)[:, None, None]
    scores = torch.einsum("bhd,bthd->bht", q, keys) * scale
    scores = scores + slopes.to(q.dtype)[None, :, None] * (place - last).to(q.dtype)
    weights = scores.masked_fill(place > last, -torch.inf).softmax(dim=-1)
    return torch.einsum("bht,bthd->bhd", weights, values).reshape(batch, heads, width)


def int4_linear(x, codes, scales, zeros, bias, GROUP):  # noqa: N803 - a dimension
    """x [M, K] times the weights of codes [N, K / 2], two of 4 bits a byte, the even one in the low
    bits: (code - zero) * scale, with zeros and scales [N, K / GROUP]; plus bias [N] -> [M, N].
    """
    numbers = torch.stack((codes & 15, codes >> 4), dim=-1).flatten(1).to(x.dtype)
    spread = [t.to(x.dtype).repeat_interleave(GROUP, dim=1) for t in (zeros, scales)]
    return x @ ((numbers - spread[0]) * spread[1]).T + bias.to(x.dtype)


def batch_norm(x, weight, bias, running_mean, running_var, momentum, eps):
    """x [N, C, L] normalised over N and L, and the running statistics [C] moved towards those of x:
    the variance that normalises is divided by N * L, the one that is kept by N * L - 1.
    """
    count = x.shape[0] * x.shape[2]
    mean, var = x.mean(dim=(0, 2)), x.var(dim=(0, 2), unbiased=False)
    scale = weight / torch.sqrt(var + eps)
    out = (x - mean[None, :, None]) * scale[None, :, None] + bias[None, :, None]
    kept = var * (count / (count - 1))
    return (
        out,
        (1 - momentum) * running_mean + momentum * mean,
        (1 - momentum) * running_var + momentum * kept,
    )


def top_gates(logits, K):  # noqa: N803 - a dimension
    """logits [T, E] -> the K largest of each row as ids [T, K], the lower one first where they tie,
    their softmax among themselves [T, K], and the mean of the softmax of all experts [E].
    """
    values, order = torch.sort(logits, dim=1, descending=True, stable=True)
    return values[:, :K].softmax(dim=1), order[:, :K].int(), logits.softmax(dim=1).mean(dim=0)


def resize(x, OH, OW):  # noqa: N803 - dimensions
    """x [B, C, H, W] -> [B, C, OH, OW] by bilinear interpolation between the centres of pixels."""
    return torch.nn.functional.interpolate(x, size=(OH, OW), mode="bilinear", align_corners=False)
