"""Products one of whose operands is read in another order in every row, as without its swizzle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from evoengine.evaluate.worker.forensics.product_pairing import (
    Pairing,
    SampledProduct,
    one_pairing,
)

CYCLES = (8, 4, 2)  # rows after which the order comes back
CHUNKS = ((8, 8), (4, 8), (2, 8), (8, 4), (4, 4))  # chunks of a row, elements in each
Operands = tuple[torch.Tensor, torch.Tensor]


def swizzled(
    sample: SampledProduct, a: torch.Tensor, b: torch.Tensor
) -> Iterator[tuple[str, Operands]]:
    """Operands that make the wrong product, with words that follow "is read"."""
    for is_first, places in ((True, sample.row), (False, sample.column)):
        for cycle in CYCLES:
            for size, width in CHUNKS:
                found = _of_cycle(sample, places, cycle, size, width)
                if found is None:
                    continue
                words = (
                    f"in another order in every row, with a period of {cycle} rows:"
                    f" {_shown(found)},"
                    f" in chunks of {width} elements, as where the XOR swizzle of shared memory is"
                    " missing or another one"
                )
                if is_first:
                    made = a.clone()
                    for number, one in enumerate(found):
                        made[..., number::cycle, :] = one.of(a[..., number::cycle, :])
                    yield words, (made, b)
                else:
                    made = b.mT.clone()
                    for number, one in enumerate(found):
                        turned = replace(one, times=one.times.mT)
                        made[..., number::cycle, :] = turned.of(b.mT[..., number::cycle, :])
                    yield words, (a, made.mT)


def _of_cycle(
    sample: SampledProduct, places: torch.Tensor, cycle: int, size: int, width: int
) -> list[Pairing] | None:
    """The pairing of each row of a cycle; None where one follows no order, or all have the same."""
    if size * width > sample.rows.shape[1]:
        return None
    found = []
    for number in range(cycle):
        own = sample.at(places % cycle == number)
        one = one_pairing(own, size, width, may_be_right=True)
        if one is None or not bool((one.times.sum(1) == 1).all()):
            return None
        found.append(one)
    if all(torch.equal(one.times, found[0].times) for one in found):
        return None
    return found


def _shown(found: list[Pairing]) -> str:
    """`in row 1 chunk 0 holds 1`."""
    for number, one in enumerate(found):
        moved = one.times.argmax(1)
        wrong = (moved != torch.arange(one.size)).nonzero().flatten().tolist()
        if wrong:
            pairs = ", ".join(f"{place} for {int(moved[place])}" for place in wrong[:4])
            return f"in row {number} of every {len(found)} chunks {pairs}"
    return "chunks exchanged"
