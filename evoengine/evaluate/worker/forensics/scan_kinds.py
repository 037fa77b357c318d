"""The scans that torch has, as a rule that joins two parts: sums, products, maxima, logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import Instead

Along = Callable[[torch.Tensor], torch.Tensor]  # over the last axis


@dataclass(frozen=True, eq=False)
class ScanKind:
    """How a scan joins what it has with what comes next."""

    name: str  # of torch's function
    join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    empty: float  # what changes nothing when it is joined
    scan: Along
    total: Along

    def shifted(self, value: torch.Tensor, places: int, more: int = 0) -> torch.Tensor:
        """Each place has what stood so many places before it along the last axis, or `empty`; the
        result is `more` longer.
        """
        extent = value.shape[-1] + more
        return torch.nn.functional.pad(value, (places, 0), value=self.empty)[..., :extent]


SCAN_KINDS: Mapping[str, ScanKind] = {
    kind.name: kind
    for kind in (
        ScanKind("cumsum", torch.add, 0.0, lambda x: x.cumsum(-1), lambda x: x.sum(-1)),
        ScanKind("cumprod", torch.mul, 1.0, lambda x: x.cumprod(-1), lambda x: x.prod(-1)),
        ScanKind(
            "logcumsumexp",
            torch.logaddexp,
            -math.inf,
            lambda x: x.logcumsumexp(-1),
            lambda x: x.logsumexp(-1),
        ),
        ScanKind(
            "cummax", torch.maximum, -math.inf, lambda x: x.cummax(-1).values, lambda x: x.amax(-1)
        ),
        ScanKind(
            "cummin", torch.minimum, math.inf, lambda x: x.cummin(-1).values, lambda x: x.amin(-1)
        ),
    )
}


def scan_axis(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The axis along which a scan runs."""
    return int(kwargs.get("dim", args[1] if len(args) > 1 else 0))


def scanned(along: Along) -> Instead:
    """A scan step that gives what `along` does over the last axis."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        made = along(args[0].movedim(axis, -1)).movedim(-1, axis)
        if func.__name__ in ("cummax", "cummin"):
            right = func(*args, **kwargs)
            return type(right)((made, right.indices))
        return made

    return instead
