"""Wrong whole numbers: places within a tile, bytes under the sign of another one, and bytes that are
no poison.
"""

from __future__ import annotations

import pytest
import torch

from evoengine.evaluate.worker.arena import POISON
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch, written
from evoengine.evaluate.worker.forensics.whole_numbers import whole_number_leads
from evoengine.evaluate.worker.gate import Gate

OTHER_POISON = 0x55
SIGNED = torch.tensor([3, -2, 5, 0, 7, 8, -9, 1] * 16, dtype=torch.int8).view(8, 16)


def compared(value: torch.Tensor, reference: torch.Tensor) -> ComparedOutput:
    wrong = value != reference
    return ComparedOutput(
        name="codes",
        axes=("N", "C"),
        dtype=value.dtype,
        value=value.double(),
        reference=reference.double(),
        wrong=wrong,
        unwritten=torch.zeros_like(wrong),
        gate=Gate(atol=0.0, rtol=0.0, rel_rmse=0.0, rel_slice=0.0),
    )


def said(value: torch.Tensor, reference: torch.Tensor, tiles: tuple[int, ...] = ()) -> list[str]:
    return [lead.sentence for lead in whole_number_leads(compared(value, reference), tiles)]


@pytest.mark.parametrize("size", [48, 128])
def test_numbers_without_the_beginning_of_their_tile_are_named(size: int) -> None:
    numbers = torch.arange(1000, dtype=torch.int32).view(10, 100)
    (sentence,) = said(numbers % size, numbers, (48,))
    assert f"modulo {size}" in sentence and "is not added" in sentence


def test_bytes_under_the_sign_of_an_earlier_one_are_named() -> None:
    packed = SIGNED.clone()
    packed[:, 2:4] = packed[:, 7] = packed[:, 10:12] = packed[:, 15] = -1
    (sentence,) = said(packed, SIGNED)
    assert "not cut to its 8 bits" in sentence and "of every 4" in sentence


def test_other_wrong_numbers_are_not_explained() -> None:
    reference = torch.arange(1000, dtype=torch.int32).view(10, 100)
    assert said(reference + 1, reference) == []
    assert said(torch.where(SIGNED < 0, SIGNED, -1), SIGNED) == []


def relaunch(poison: int, value: torch.Tensor) -> Relaunch:
    return Relaunch(({"codes": value},), poison)


def test_what_holds_the_poison_by_chance_is_written() -> None:
    value = torch.full((4,), -1, dtype=torch.int8)
    other = torch.tensor([-1, -1, OTHER_POISON, OTHER_POISON], dtype=torch.int8)
    launches = (relaunch(POISON, value), relaunch(OTHER_POISON, other))
    found = written("codes", launches)
    assert POISON == 0xFF
    assert found is not None and found.tolist() == [True, True, False, False]
    assert written("codes", launches[:1]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("all zero", torch.zeros(1000, dtype=torch.int32)),
        ("low byte", 8 * torch.arange(1000, dtype=torch.int32) & 0xFF),
    ],
)
def test_numbers_that_are_no_places_in_a_tile_are_not_explained(
    name: str, value: torch.Tensor
) -> None:
    assert said(value, 8 * torch.arange(1000, dtype=torch.int32)) == [], name


def test_an_output_without_dimensions_is_looked_at() -> None:
    launches = [relaunch(poison, torch.tensor(0.0)) for poison in (POISON, OTHER_POISON)]
    found = written("codes", launches)
    assert found is not None and bool(found)
