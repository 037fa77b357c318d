"""Steps in few bits: narrow accumulators, rounded results, differences that cancel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    CONTRACTIONS,
    REDUCTIONS,
    UNARY,
    ChangedStep,
    Instead,
    reduced_axes,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

HALVES = (("fp16", torch.float16), ("bf16", torch.bfloat16))
E4M3 = ("e4m3", torch.float8_e4m3fn)
MMA_K = 16  # products that a tensor instruction adds at once
MOST_CHUNKS = 256  # of a sum that is rounded after each
LANES = 32


def imprecise_steps(
    steps: Sequence[ReferenceStep], recorder: StepRecorder
) -> Iterator[ChangedStep]:
    """Sums in narrow accumulators, and results rounded to narrow types."""
    for step in steps:
        if step.name == "matmul":
            for name, dtype in HALVES:
                for size in (MMA_K, 1):
                    words = f"summed in {name} in {step.words}"
                    yield _rough(step, words, _narrow_product(dtype, size), _of_sums(name))
            words = f"with sums cut to bf16 in {step.words}"
            yield _rough(step, words, _narrow_product(None, 1), _of_sums("bf16"))
        elif step.name in ("sum", "mean", "cumsum"):
            for name, dtype in HALVES:
                words = f"summed in {name} in {step.words}"
                yield _rough(step, words, _narrow_sum(dtype), _of_sums(name))
        elif step.name in ("index_add", "index_add_"):
            for name, dtype in HALVES:
                words = f"summed in {name} in {step.words}"
                yield _rough(step, words, _rounded_result(dtype), _of_sums(name))
    yield from _cancelling(steps, recorder)
    for step in steps:
        if step.name in UNARY | BINARY | REDUCTIONS | CONTRACTIONS:
            for name, dtype in (*HALVES, E4M3):
                words = f"with the result of {step.words} rounded to {name}"
                yield ChangedStep(
                    DiagnosisKind.low_precision, words, {step.place: _rounded_result(dtype)}
                )


def _of_sums(name: str) -> str:
    half = " (half precision)" if name == "fp16" else ""
    return f"the sum is accumulated in {name}{half}"


def _rough(step: ReferenceStep, words: str, instead: Instead, mistake: str) -> ChangedStep:
    kind = DiagnosisKind.low_precision
    return ChangedStep(kind, words, {step.place: instead}, 1.0, True, mistake)


def _narrow_product(dtype: torch.dtype | None, size: int) -> Instead:
    """A product whose sums are rounded after each `size` products; None: cut to bf16."""

    def instead(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        depth = args[0].shape[-1]
        step = max(size, -(-depth // MOST_CHUNKS))
        total = None
        for start in range(0, depth, step):
            part = args[0][..., start : start + step] @ args[1][..., start : start + step, :]
            total = part if total is None else total + part
            total = _cut_to_bf16(total) if dtype is None else total.to(dtype).double()
        assert total is not None
        return total

    return instead


def _cut_to_bf16(value: torch.Tensor) -> torch.Tensor:
    bits = value.float().contiguous().view(torch.int32)
    return (bits & -(1 << 16)).view(torch.float32).double()


def _narrow_sum(dtype: torch.dtype) -> Instead:
    """A sum of 32 lanes, each in a narrow accumulator."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        name = getattr(func, "__name__", "")
        axes = reduced_axes(args, kwargs)
        if len(axes) != 1 or name not in ("sum", "mean"):
            return func(*args, **kwargs).to(dtype).double()
        axis, extent = axes[0], args[0].shape[axes[0]]
        lanes = min(LANES, extent)
        total = torch.zeros_like(args[0].narrow(axis, 0, lanes))
        for start in range(0, extent, lanes):
            part = args[0].narrow(axis, start, min(lanes, extent - start))
            if part.shape[axis] == lanes:
                total = (total + part).to(dtype).double()
            else:
                total.narrow(axis, 0, part.shape[axis]).add_(part)
        found = total.sum(axis, keepdim=bool(kwargs.get("keepdim", False)))
        return found / extent if name == "mean" else found

    return instead


def _cancelling(steps: Sequence[ReferenceStep], recorder: StepRecorder) -> Iterator[ChangedStep]:
    """A variance by E[x^2] - mean^2 in single precision."""
    by_place = {step.place: step for step in steps}

    def before(step: ReferenceStep) -> ReferenceStep | None:
        feeds = recorder.feeds.get(step.place, ())
        return by_place.get(feeds[0]) if feeds and feeds[0] is not None else None

    for step in steps:
        squares = before(step) if step.name in ("mean", "sum") else None
        spread = before(squares) if squares and squares.name in ("pow", "mul", "square") else None
        if spread is None or spread.name != "sub":
            continue
        held: list[Any] = []

        def hold(func: Any, args: tuple[Any, ...], kwargs: Any, held: list[Any] = held) -> Any:
            held[:] = args[:2]
            return func(*args, **kwargs)

        def difference(
            func: Any, args: tuple[Any, ...], kwargs: Any, held: list[Any] = held
        ) -> Any:
            value, mean = held[0].float(), held[1].float()
            squared = func((value * value).double(), *args[1:], **kwargs).float()
            own = func(held[0] * 0 + 1, *args[1:], **kwargs).float()  # the count of a sum
            return (squared - own * (mean * mean).view_as(squared)).double()

        name = step.result
        yield ChangedStep(
            DiagnosisKind.low_precision,
            f"with E[x^2] - mean^2 in place of {step.words}",
            {spread.place: hold, step.place: difference},
            1.0,
            True,
            f"{name} is computed as E[x^2] - mean^2, which cancels where the mean is large",
        )


def _rounded_result(dtype: torch.dtype) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if not isinstance(found, torch.Tensor) or not found.is_floating_point():
            return found
        return found.to(dtype).to(found.dtype)

    return instead
