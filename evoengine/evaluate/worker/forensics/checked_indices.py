"""Refuses indices out of range before a GPU sees them: there one ends the whole process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# an index, its least value, and the first one that is too large
Ranges = Iterator[tuple[torch.Tensor, int, int]]


class CheckedIndices(TorchDispatchMode):
    """Raises IndexError in place of the assertion with which a CUDA kernel answers an index out of
    range. That assertion makes every later call of its process fail. The indices are looked at,
    which waits for the device.
    """


def _call_checked(
    _: CheckedIndices,
    func: Any,
    types: Any,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    ranges = _RANGES.get(func.overloadpacket)
    if ranges is not None:
        for index, least, end in ranges(*args, **(kwargs or {})):
            _expect_within(index, least, end)
    return func(*args, **(kwargs or {}))


# torch wraps what the body of such a class defines in a function that imports its compiler on the
# first call, for one to five seconds.
CheckedIndices.__torch_dispatch__ = _call_checked  # type: ignore[method-assign,assignment]


def _expect_within(index: torch.Tensor, least: int, end: int) -> None:
    if index.numel() and not bool(((index >= least) & (index < end)).all()):
        raise IndexError(f"an index is not within {least} and {end - 1}")


def _of_indices(source: torch.Tensor, indices: Sequence[torch.Tensor | None], *_: Any) -> Ranges:
    """x[i, :, mask]: a mask stands for as many dimensions as it has; -1 is the last element."""
    dim = 0
    for index in indices:
        if index is not None and index.dtype not in (torch.bool, torch.uint8):
            yield index, -source.shape[dim], source.shape[dim]
        is_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        dim += index.dim() if index is not None and is_mask else 1


def _along(source: torch.Tensor, dim: int, index: torch.Tensor, *_: Any, **__: Any) -> Ranges:
    if source.dim():
        yield index, 0, source.shape[dim]


def _of_elements(source: torch.Tensor, index: torch.Tensor, *_: Any, **__: Any) -> Ranges:
    yield index, -source.numel(), source.numel()


def _of_rows(table: torch.Tensor, index: torch.Tensor, *_: Any, **__: Any) -> Ranges:
    yield index, 0, table.shape[0]


def _of_bags(
    table: torch.Tensor, index: torch.Tensor, offsets: torch.Tensor, *_: Any, **__: Any
) -> Ranges:
    yield index, 0, table.shape[0]
    yield offsets, 0, index.numel() + 1


def _of_classes(
    scores: torch.Tensor, target: torch.Tensor, weight: Any, reduction: int, ignored: int
) -> Ranges:
    yield target[target != ignored], 0, scores.shape[1 if scores.dim() > 1 else 0]


_RANGES: dict[Any, Callable[..., Ranges]] = {
    **dict.fromkeys((aten.index, aten.index_put, aten.index_put_), _of_indices),
    **dict.fromkeys(
        (
            aten.gather,
            aten.index_add,
            aten.index_add_,
            aten.index_copy,
            aten.index_copy_,
            aten.index_fill,
            aten.index_fill_,
            aten.index_reduce,
            aten.index_reduce_,
            aten.index_select,
            aten.scatter,
            aten.scatter_,
            aten.scatter_add,
            aten.scatter_add_,
            aten.scatter_reduce,
            aten.scatter_reduce_,
        ),
        _along,
    ),
    **dict.fromkeys((aten.take, aten.put, aten.put_), _of_elements),
    aten.embedding: _of_rows,
    **dict.fromkeys((aten._embedding_bag, aten._embedding_bag_forward_only), _of_bags),
    **dict.fromkeys((aten.nll_loss_forward, aten.nll_loss2d_forward), _of_classes),
}
