"""Outputs with all kinds of errors, and the comparison of kernels.cu's figures with the gate's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy
import pytest
import torch

from evoengine.evaluate.worker.cuda.harness.device_table import Array
from evoengine.evaluate.worker.cuda.harness.harness_kernels import DTYPES
from evoengine.evaluate.worker.cuda.output_comparison import _COMPARISON, _errors
from evoengine.evaluate.worker.gate import Gate, errors_of
from evoengine.evaluate.worker.slices import slice_elements, tiny_of
from tests.evaluate.worker.infinite_references import InfiniteCase

GATE = Gate(atol=1e-2, rtol=1e-3, rel_rmse=0.0, rel_slice=0.0)
# atol and rtol of comparisons; the first has no room, so that 0 * infinity would be NaN
INFINITE_GATES = (Gate(0.0, 0.0, 0.0, 0.0), Gate(1e-3, 0.5, 0.0, 0.0))
KINDS = 8  # of errors
Pair = tuple[torch.Tensor, torch.Tensor]  # an output and its reference, contiguous


def compared_pairs(
    name: str, shapes: Iterable[tuple[int, ...]], device: torch.device
) -> list[Pair]:
    """An output of every shape with every kind of errors, with and without a row whose reference is
    zero.
    """
    dtype, pairs = getattr(torch, name), list[Pair]()
    for shape in shapes:
        for kind in range(KINDS):
            for zero_row in (False, True):
                output = values(shape, dtype, device)
                reference = output.double()
                if dtype.is_floating_point and kind in (1, 5):
                    reference *= 1 + 1e-3 * torch.randn(shape, device=device)
                if zero_row:
                    reference[-1] = 0
                if kind >= 6 and dtype.is_floating_point:
                    with_infinities(output, reference, kind)
                pairs.append((spoiled(output, kind), reference))
    return pairs


def values(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Random values of a dtype."""
    if dtype == torch.bool:
        return torch.rand(shape, device=device) > 0.5
    if not dtype.is_floating_point:
        low, high = (0, 200) if dtype == torch.uint8 else (-100, 100)
        return torch.randint(low, high, shape, device=device).to(dtype)
    return (torch.randn(shape, device=device) * torch.rand(shape, device=device).exp()).to(dtype)


def spoiled(output: torch.Tensor, kind: int) -> torch.Tensor:
    """`output` with nothing, some elements, the last one or the first row changed, or with some NaN
    or infinities.
    """
    found, dtype = output.clone(), output.dtype
    flat = found.view(-1)
    count = max(1, flat.numel() // 50)
    places = torch.randint(0, flat.numel(), (count,), device=output.device)
    if kind == 1:
        flat[places] = values((count,), dtype, output.device)
    elif kind == 2:
        flat[-1] = values((1,), dtype, output.device)[0]
    elif kind == 3 and dtype.is_floating_point:
        flat[places] = math.nan
    elif kind == 4 and dtype.is_floating_point:
        flat[places[:1]] = math.inf
        flat[places[-1:]] = -math.inf
    elif kind == 5:
        found[0] = 0
    return found


def with_infinities(output: torch.Tensor, reference: torch.Tensor, kind: int) -> None:
    """Puts infinities into a reference, in some elements and in the first row, most of which the
    output has too.
    """
    flat, count = reference.view(-1), max(1, reference.numel() // 20)
    places = torch.randint(0, flat.numel(), (count,), device=reference.device)
    flat[places] = math.inf
    flat[places[: count // 2]] = -math.inf
    if kind == 7:
        reference[0] = -math.inf
    output.copy_(torch.where(reference.isinf(), reference, output.double()))
    output.view(-1)[places[:3]] = 5


def row_of(
    output: torch.Tensor, reference: torch.Tensor, *addresses: int, gate: Gate = GATE
) -> tuple[float, ...]:
    """One Comparison of kernels.cu; `addresses` of both, where torch's are not those."""
    return (
        *(addresses or (output.data_ptr(), reference.data_ptr())),
        reference.numel(),
        slice_elements(tuple(reference.shape)),
        DTYPES[str(output.dtype).removeprefix("torch.")],
        gate.atol,
        gate.rtol,
        tiny_of(output.dtype),
    )


def table_of(pairs: Sequence[Pair], gate: Gate = GATE) -> Array:
    """The table of a comparison of all pairs."""
    return numpy.array([row_of(*pair, gate=gate) for pair in pairs], dtype=_COMPARISON)


def refuse_other_figures(raw: Array, pairs: Sequence[Pair], gate: Gate = GATE) -> None:
    """Fails where the figures of a pair are not those of the gate."""
    for number, (output, reference) in enumerate(pairs):
        found = _errors(raw[number], reference.numel())
        wanted = errors_of(output, reference, gate)
        shown = f"{tuple(reference.shape)}, pair {number}: {found} instead of {wanted}"
        assert (found.failing, found.nan_count) == (wanted.failing, wanted.nan_count), shown
        assert found.max_abs == wanted.max_abs, shown
        needed = pytest.approx(wanted.needed_atol, rel=1e-9, abs=1e-15)
        assert found.needed_atol == needed, shown
        assert found.rel_rmse == pytest.approx(wanted.rel_rmse, rel=1e-9), shown
        slices = pytest.approx(wanted.slice_rel_rmse, rel=1e-9, abs=1e-300)
        assert found.slice_rel_rmse == slices, shown


def refuse_other_verdicts(raw: Array, cases: Sequence[InfiniteCase], gate: Gate) -> None:
    """Fails where the figures of a case are not those of the table and of the gate."""
    for figures, case in zip(raw, cases, strict=True):
        found = (int(figures["failing"]), int(figures["nan"]))
        assert found == (case.failing, case.nan_count), case.shown
    refuse_other_figures(raw, [(case.output, case.reference) for case in cases], gate)
