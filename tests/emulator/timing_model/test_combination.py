"""What is said about the way from bounds to a modelled time is what the model does."""

from __future__ import annotations

import math
import re

import pytest

from evoengine.emulator.targets import TARGETS, find
from evoengine.emulator.timing_model.combination import IN_FULL, IN_SHORT
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import model_launch

COUNTS = Counts(
    blocks=1,
    warps=8,
    instructions={"fma": 9000.0, "alu": 4000.0, "lsu": 500.0},
    delays={"fixed": 4000.0, "global": 40.0},
    shared_wavefronts=900.0,
    load_sectors=4000.0,
    block_sectors=4000.0,
    unique_bytes=1e6,
)


@pytest.mark.parametrize("blocks", [1, 132, 132 * 3, 132 * 40])
def test_a_reader_can_compute_the_time_from_the_bounds_as_told(blocks: int) -> None:
    p, q = (float(power) for power in re.findall(r"\^\(1/([\d.]+)\)", IN_FULL))
    (gap_us,) = (float(gap) for gap in re.findall(r"takes ([\d.]+) us launch gap", IN_FULL))
    found = model_launch(
        COUNTS, target=find("h200"), grid=(blocks,), block=(256,), registers=32, shared_bytes=0
    )
    bounds = dict(found.bounds_us)
    latency = bounds.pop("latency")
    all_others = math.fsum(bound**q for bound in bounds.values()) ** (1 / q)
    at_once = min(math.ceil(blocks / find("h200").sms), found.occupancy.blocks)
    work = all_others**p - (all_others / at_once) ** p
    assert found.us == pytest.approx(gap_us + (work + latency**p) ** (1 / p))
    largest, whole = max([latency, *bounds.values()]), latency + sum(bounds.values())
    assert gap_us + largest <= found.us * (1 + 1e-9)  # as IN_SHORT says
    assert found.us <= gap_us + whole


def test_both_texts_give_the_launch_gap_of_every_target() -> None:
    for text in (IN_FULL, IN_SHORT):
        (gap_us,) = re.findall(r"takes ([\d.]+) us launch gap", text)
        assert {target.launch_us for target in TARGETS.values()} == {float(gap_us)}
