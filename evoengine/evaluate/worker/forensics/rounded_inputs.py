"""Inputs of the reference in narrower types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.axis_words import listed
from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, each_input
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

PRECISIONS = (
    ("bf16", torch.bfloat16),
    ("e4m3", torch.float8_e4m3fn),
    ("e5m2", torch.float8_e5m2),
    ("fp16", torch.float16),
)
FEW, FEW_EXPLAIN = 64, 0.9
TF32_BITS = 13  # of a float32 that tf32 drops


def rounded_inputs(inputs: Tensors) -> Iterator[ChangedInputs]:
    """One input, and all of them, in a narrower type."""
    floating = [name for name, value in inputs.items() if value.is_floating_point()]
    for words, dtype in PRECISIONS:
        whole = [name for name in floating if inputs[name].dtype != dtype]
        for names in dict.fromkeys([tuple(whole), *((name,) for name in whole)]):
            if names:
                yield ChangedInputs(
                    DiagnosisKind.low_precision,
                    f"{listed(names)} rounded to {words}",
                    least=_least(inputs, names),
                    cut_change=each_input(
                        names,
                        lambda x, dtype=dtype: x.float().to(dtype).float(),  # type: ignore[misc]
                    ),
                )
                if dtype == torch.float8_e4m3fn:
                    yield ChangedInputs(
                        DiagnosisKind.low_precision,
                        f"{listed(names)} rounded to {words} with a scale",
                        least=_least(inputs, names),
                        cut_change=each_input(names, _scaled_e4m3),
                    )
    single = tuple(name for name in floating if inputs[name].dtype == torch.float32)
    if single:
        words = f"{listed(single)} rounded to tf32"
        yield ChangedInputs(
            DiagnosisKind.low_precision,
            words,
            least=_least(inputs, single),
            cut_change=each_input(single, to_tf32),
        )


def _least(inputs: Tensors, names: Sequence[str]) -> float:
    """The share of an error that these inputs must explain: a few numbers that are off by a little
    come near to any error.
    """
    numbers = sum(inputs[name].numel() for name in names)
    return FEW_EXPLAIN if numbers < FEW else 0.0


def to_tf32(value: torch.Tensor) -> torch.Tensor:
    """float32 values with 10 bits of fraction, rounded to nearest."""
    bits = value.float().contiguous().view(torch.int32)
    return ((bits + (1 << (TF32_BITS - 1))) & -(1 << TF32_BITS)).view(torch.float32)


def _scaled_e4m3(value: torch.Tensor) -> torch.Tensor:
    largest = (
        value.float()
        .abs()
        .amax(dim=tuple(range(max(0, value.dim() - 2), value.dim())), keepdim=True)
    )
    scale = torch.where(largest > 0, largest / 448.0, torch.ones_like(largest))
    return (value.float() / scale).to(torch.float8_e4m3fn).float() * scale
