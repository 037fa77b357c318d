"""The references of the tasks of this folder, and what is good enough in single precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def window_attention(q, k, v, sink, scale, W):  # noqa: N803 - a dimension
    """q [B, S, KV * G, D], k and v [B, S, KV, D], sink [KV * G] -> [B, S, KV * G, D]: a query sees
    its own key and the W - 1 before it; `sink` is the score of one more key, whose value is zero.
    """
    size = k.shape[1]
    groups = q.shape[2] // k.shape[2]
    keys, values = (t.repeat_interleave(groups, dim=2) for t in (k, v))
    scores = torch.einsum("bshd,bthd->bhst", q, keys) * scale
    place = torch.arange(size, device=q.device)
    behind = place[:, None] - place[None, :]
    scores = scores.masked_fill((behind < 0) | (behind >= W), -torch.inf)
    extra = sink.to(q.dtype)[None, :, None, None].expand(*scores.shape[:3], 1)
    weights = torch.cat((scores, extra), dim=-1).softmax(dim=-1)[..., :size]
    return torch.einsum("bhst,bthd->bshd", weights, values)


def expert_products(x, weight, bias, experts, gates):
    """x [T, K], weight [E, K, N], bias [E, N]; each row has two experts with gates [T, 2] -> [T, N]:
    the sum of gate * (row @ weight + bias) over both.
    """
    chosen = experts.long()
    products = torch.einsum("tk,tjkn->tjn", x, weight[chosen]) + bias[chosen]
    return (gates.to(x.dtype)[:, :, None] * products).sum(dim=1)


def swiglu_int8(x, smooth, least):
    """x [T, 2 * C], smooth [C] -> silu of the first half times the second half times smooth, as
    8-bit integers [T, C] and the scale of each row [T]: its largest magnitude, or `least`, / 127.
    """
    gate, up = x.chunk(2, dim=1)
    product = torch.nn.functional.silu(gate) * up * smooth
    scales = product.abs().amax(dim=1).clamp(min=least) / 127
    return torch.round(product / scales[:, None]).to(torch.int8), scales
