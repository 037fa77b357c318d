"""Functions of torch that consist of several steps, written out, so that each step can be changed.

Their variables are named as engineers name them, because sentences quote them. What one of them
gives is compared with torch's own function before it is used, so one that does not know an argument
is only not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from evoengine.evaluate.worker.forensics.written_out_windows import (
    avg_pool2d,
    conv1d,
    conv2d,
    max_pool2d,
)

Axes = int | tuple[int, ...] | list[int]


def softmax(scores: Tensor, dim: int, **_dtype: Any) -> Tensor:
    """As torch's softmax."""
    maximum = scores.amax(dim, keepdim=True)
    exponentials = (scores - maximum).exp()
    total = exponentials.sum(dim, keepdim=True)
    return exponentials / total


def log_softmax(scores: Tensor, dim: int, **_dtype: Any) -> Tensor:
    """As torch's log_softmax."""
    maximum = scores.amax(dim, keepdim=True)
    exponentials = (scores - maximum).exp()
    total = exponentials.sum(dim, keepdim=True)
    logarithm = total.log()
    return (scores - maximum) - logarithm


def logsumexp(scores: Tensor, dim: Axes, keepdim: bool = False) -> Tensor:
    """As torch's logsumexp."""
    maximum = scores.amax(dim, keepdim=True)
    exponentials = (scores - maximum).exp()
    total = exponentials.sum(dim, keepdim=keepdim)
    logarithm = total.log()
    maximum = maximum.view(total.shape)
    return logarithm + maximum


def cross_entropy(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """As torch's cross_entropy of class numbers, of scores of shape (rows, classes)."""
    maximum = scores.amax(1, keepdim=True)
    exponentials = (scores - maximum).exp()
    total = exponentials.sum(1, keepdim=True)
    logarithm = total.log()
    is_ignored = target == ignore_index
    number = target.long().masked_fill(is_ignored, 0).unsqueeze(1)
    chosen = (scores - maximum).gather(1, number)
    loss = (logarithm - chosen).squeeze(1)
    weights = torch.ones_like(loss)
    if weight is not None:
        weights = weight.index_select(0, number.squeeze(1))
        loss = loss * weights
    if label_smoothing:
        each = logarithm - (scores - maximum)
        each = each if weight is None else each * weight
        smooth = each.mean(1)
        loss = loss * (1 - label_smoothing) + smooth * label_smoothing
    if bool(is_ignored.any()):
        loss = torch.where(is_ignored, 0.0, loss)
        weights = torch.where(is_ignored, 0.0, weights)
    return _reduced(loss, weights, reduction)


def nll_loss(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """As torch's nll_loss, of logarithms of shape (rows, classes)."""
    is_ignored = target == ignore_index
    number = target.long().masked_fill(is_ignored, 0).unsqueeze(1)
    chosen = scores.gather(1, number)
    loss = -chosen.squeeze(1)
    weights = torch.ones_like(loss)
    if weight is not None:
        weights = weight.index_select(0, number.squeeze(1))
        loss = loss * weights
    if bool(is_ignored.any()):
        loss = torch.where(is_ignored, 0.0, loss)
        weights = torch.where(is_ignored, 0.0, weights)
    return _reduced(loss, weights, reduction)


def _reduced(loss: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """The loss of each row, or their sum, or that over what the rows count."""
    if reduction == "none":
        return loss
    return loss.sum() / weights.sum() if reduction == "mean" else loss.sum()


def kl_div(
    x: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """As torch's kl_div, of logarithms x."""
    loss = target.exp() * (target - x) if log_target else target * (target.log() - x)
    if reduction == "batchmean":
        return loss.sum() / x.shape[0]
    return _reduced(loss, torch.ones_like(loss), reduction)


def layer_norm(
    x: Tensor,
    shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_rest: Any,
) -> Tensor:
    """As torch's layer_norm."""
    axes = tuple(range(x.dim() - len(shape), x.dim()))
    mean = x.mean(axes, keepdim=True)
    deviations = x - mean
    squares = deviations.square()
    variance = squares.mean(axes, keepdim=True)
    deviation = (variance + eps).sqrt()
    normalised = (x - mean) / deviation
    scaled = normalised if weight is None else normalised * weight
    return scaled if bias is None else scaled + bias


def group_norm(
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_rest: Any,
) -> Tensor:
    """As torch's group_norm."""
    values = x.reshape(x.shape[0], groups, -1)
    mean = values.mean(-1, keepdim=True)
    deviations = values - mean
    squares = deviations.square()
    variance = squares.mean(-1, keepdim=True)
    deviation = (variance + eps).sqrt()
    normalised = ((values - mean) / deviation).reshape(x.shape)
    each = (-1, *(1,) * (x.dim() - 2))
    scaled = normalised if weight is None else normalised * weight.view(each)
    return scaled if bias is None else scaled + bias.view(each)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """As torch's instance_norm of the statistics of its input."""
    return group_norm(x, x.shape[1], weight, bias, eps)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """As torch's batch_norm."""
    each = (-1, *(1,) * (x.dim() - 2))
    axes = (0, *range(2, x.dim()))
    if training or running_mean is None or running_var is None:
        mean = x.mean(axes, keepdim=True)
        deviations = x - mean
        squares = deviations.square()
        variance = squares.mean(axes, keepdim=True)
    else:
        mean = running_mean.view(each)
        variance = running_var.view(each)
    deviation = (variance + eps).sqrt()
    normalised = (x - mean) / deviation
    scaled = normalised if weight is None else normalised * weight.view(each)
    return scaled if bias is None else scaled + bias.view(each)


def rms_norm(
    x: Tensor, shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """As torch's rms_norm."""
    axes = tuple(range(x.dim() - len(shape), x.dim()))
    squares = x.square()
    mean_square = squares.mean(axes, keepdim=True)
    root = (mean_square + (torch.finfo(x.dtype).eps if eps is None else eps)).sqrt()
    normalised = x / root
    return normalised if weight is None else normalised * weight


def normalize(
    x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> Tensor:
    """As torch's normalize."""
    squares = x.abs().pow(p)
    total = squares.sum(dim, keepdim=True)
    norm = total ** (1 / p)
    return x / norm.clamp_min(eps)


def vector_norm(x: Tensor, *, dim: Axes | None = None, keepdim: bool = False) -> Tensor:
    """As torch's vector_norm."""
    squares = x.square()
    total = squares.sum(tuple(range(x.dim())) if dim is None else dim, keepdim=keepdim)
    return total.sqrt()


def variance(
    x: Tensor, dim: Axes | None = None, unbiased: bool = True, keepdim: bool = False, **given: Any
) -> Tensor:
    """As torch's var."""
    axes = tuple(range(x.dim())) if dim is None else dim
    mean = x.mean(axes, keepdim=True)
    deviations = x - mean
    squares = deviations.square()
    total = squares.sum(axes, keepdim=keepdim)
    count = x.numel() / max(1, total.numel())
    divisor: float = count - given.get("correction", 1 if unbiased else 0)
    return total / divisor


def standard_deviation(x: Tensor, *given: Any, **named: Any) -> Tensor:
    """As torch's std."""
    return variance(x, *given, **named).sqrt()


def silu(x: Tensor, **_inplace: Any) -> Tensor:
    """As torch's silu."""
    sigmoid = 1 / (1 + (-x).exp())
    return x * sigmoid


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """As torch's glu."""
    value, gate = x.chunk(2, dim)
    sigmoid = gate.sigmoid()
    return value * sigmoid


def softplus(x: Tensor) -> Tensor:
    """As torch's softplus."""
    return (1 + x.exp()).log()


def elu(x: Tensor, alpha: float = 1.0, **_inplace: Any) -> Tensor:
    """As torch's elu."""
    exponential = x.clamp_max(0).exp()
    negative = alpha * (exponential - 1)
    return torch.where(x > 0, x, negative)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, **_inplace: Any) -> Tensor:
    """As torch's leaky_relu."""
    negative = x * negative_slope
    return torch.where(x > 0, x, negative)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """As torch's gelu."""
    if approximate == "tanh":
        cubic = x + 0.044715 * x**3
        return 0.5 * x * (1 + (math.sqrt(2 / math.pi) * cubic).tanh())
    return 0.5 * x * (1 + (x / math.sqrt(2)).erf())


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As torch's linear."""
    product = x @ weight.mT
    return product if bias is None else product + bias


def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """As torch's addmm."""
    product = a @ b
    return bias * beta + product * alpha


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """As torch's scaled_dot_product_attention."""
    scores = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype == torch.bool
            else scores + attn_mask
        )
    weights = scores.softmax(-1)
    return weights @ v


def einsum(formula: str, a: Tensor, b: Tensor) -> Tensor:
    """As torch's einsum."""
    given, _, result = formula.replace(" ", "").partition("->")
    first, second = given.split(",")
    shared = [one for one in first if one in second and one in result]
    inner = [one for one in first if one in second and one not in result]
    rows = [one for one in first if one not in second]
    columns = [one for one in second if one not in first]
    if "." in formula or not result or sorted(result) != sorted([*shared, *rows, *columns]):
        raise ValueError("no product of two")
    extents = {**dict(zip(first, a.shape, strict=True)), **dict(zip(second, b.shape, strict=True))}

    def sizes(*groups: list[str]) -> list[int]:
        return [math.prod(extents[one] for one in group) for group in groups]

    left = a.permute([first.index(one) for one in (*shared, *rows, *inner)])
    right = b.permute([second.index(one) for one in (*shared, *inner, *columns)])
    left = left.reshape(sizes(shared, rows, inner))
    right = right.reshape(sizes(shared, inner, columns))
    product = left @ right
    order = [*shared, *rows, *columns]
    whole = product.reshape([extents[one] for one in order])
    return whole.permute([order.index(one) for one in result])


# by the name of torch's function
WRITTEN_OUT: Mapping[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "cross_entropy": cross_entropy,
    "nll_loss": nll_loss,
    "kl_div": kl_div,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "batch_norm": batch_norm,
    "rms_norm": rms_norm,
    "normalize": normalize,
    "vector_norm": vector_norm,
    "var": variance,
    "std": standard_deviation,
    "silu": silu,
    "glu": glu,
    "softplus": softplus,
    "elu": elu,
    "leaky_relu": leaky_relu,
    "gelu": gelu,
    "linear": linear,
    "addmm": addmm,
    "scaled_dot_product_attention": attention,
    "conv2d": conv2d,
    "conv1d": conv1d,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "einsum": einsum,
}
