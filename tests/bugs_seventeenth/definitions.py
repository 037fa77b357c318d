"""The references of the tasks of this folder, and what is good enough in half precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def alibi_decode(q, k, v, slopes, lengths, scale):
    """q [B, H, D], k and v [B, H, T, D] of which lengths [B] positions are used, slopes [H] that
    lower a score for every position between a key and the last one -> [B, H, D].
    """
    place = torch.arange(k.shape[2], device=q.device)[None, None, :]
    age = (lengths.long() - 1)[:, None, None] - place
    scores = torch.einsum("bhd,bhtd->bht", q, k) * scale
    scores = scores - slopes.to(q.dtype)[None, :, None] * age.to(q.dtype)
    weights = scores.masked_fill(age < 0, -torch.inf).softmax(dim=-1)
    return torch.einsum("bht,bhtd->bhd", weights, v)


def alibi_in_half(q, k, v, slopes, lengths, scale):
    """In single precision, and rounded once."""
    return alibi_decode(q.float(), k.float(), v.float(), slopes, lengths, scale).half()


def strided_max_pool(x, SIZE):  # noqa: N803 - a dimension
    """x [P, H, W] -> the largest elements of windows of SIZE x SIZE, two apart, the first of which
    begin one before the plane, and their places y * W + x in the plane.
    """
    out, places = torch.nn.functional.max_pool2d(x[:, None], SIZE, 2, 1, return_indices=True)
    return out[:, 0], places[:, 0].int()


def column_moments(x):
    """x [N, C] -> the mean of each column [C], and its variance divided by N - 1 [C]."""
    return x.mean(dim=0), x.var(dim=0, unbiased=True)


def nf4_matvec(x, codes, scales, book):
    """codes [M, K / 2], two of 4 bits a byte, the first one in the upper bits: book[code] * scale,
    with scales [M, K / 64], times x [K] -> [M].
    """
    numbers = torch.stack((codes >> 4, codes & 15), dim=-1).flatten(1).long()
    weights = book.to(x.dtype)[numbers] * scales.to(x.dtype).repeat_interleave(64, dim=1)
    return weights @ x


def tridiagonal_solve(below, middle, above, right):
    """All [B, N]: below[:, i] multiplies the unknown i - 1 in equation i, above[:, i] the unknown
    i + 1; below[:, 0] and above[:, N - 1] are not used -> the unknowns [B, N].
    """
    matrix = torch.diag_embed(middle)
    matrix = matrix + torch.diag_embed(below[:, 1:], offset=-1)
    matrix = matrix + torch.diag_embed(above[:, :-1], offset=1)
    return torch.linalg.solve(matrix, right[:, :, None])[:, :, 0]
