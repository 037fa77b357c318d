"""What is said about the way from bounds to a modelled time is what the model does."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from evoengine.emulator.targets import TARGETS, find
from evoengine.emulator.timing_model.combination import BOUNDS, IN_FULL, IN_SHORT, spent_on
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import ModelledLaunch, model_launch

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


def modelled(cold: bool = False, blocks: int = 1320, **more: Any) -> ModelledLaunch:
    """The modelled launch of COUNTS with other values of some fields."""
    return model_launch(
        replace(COUNTS, **more),
        target=find("h200"),
        grid=(blocks,),
        block=(256,),
        registers=32,
        shared_bytes=0,
        cold=cold,
    )


PIPES = ("fma", "imad", "alu", "half", "mufu", "fp64", "shuffle", "lsu", "tensor", "control")


def test_every_bound_that_the_model_gives_has_words_and_no_other_has() -> None:
    everything = modelled(
        cold=True,
        instructions=dict.fromkeys(PIPES, 1000.0),
        flops={"f16": 1e6},
        atomics=100.0,
        lines=100.0,
    )
    assert set(everything.bounds_us) == set(BOUNDS)


@pytest.mark.parametrize(
    ("more", "grow"),
    [
        ({"instructions": {**COUNTS.instructions, "fma": 9500.0}}, {"fma", "issue"}),
        ({"instructions": {**COUNTS.instructions, "alu": 9000.0}}, {"alu", "issue"}),
        ({"instructions": {**COUNTS.instructions, "imad": 500.0}}, {"imad", "issue"}),
        ({"instructions": {**COUNTS.instructions, "half": 500.0}}, {"half", "issue"}),
        ({"instructions": {**COUNTS.instructions, "mufu": 500.0}}, {"mufu", "issue"}),
        ({"instructions": {**COUNTS.instructions, "fp64": 500.0}}, {"fp64", "issue"}),
        ({"instructions": {**COUNTS.instructions, "lsu": 900.0}}, {"lsu", "issue"}),
        ({"instructions": {**COUNTS.instructions, "control": 900.0}}, {"issue"}),
        (
            {"instructions": {**COUNTS.instructions, "shuffle": 900.0}},
            {"shuffle", "issue", "shared"},
        ),
        ({"flops": {"f16": 1e6}}, {"tensor"}),
        ({"shared_wavefronts": 1900.0}, {"shared"}),
        ({"lines": 1900.0}, {"shared"}),  # hits in L1, too
        ({"load_sectors": 9000.0}, set()),  # loads that L1 holds
        ({"load_sectors": 9000.0, "block_sectors": 9000.0}, {"l2", "l2_port"}),
        ({"store_sectors": 100.0}, {"l2", "l2_port"}),
        ({"copy_sectors": 100.0}, {"l2", "l2_port"}),
        ({"atomics": 1e4}, {"atomic"}),
        ({"same_line": 1e4}, {"atomic"}),
        ({"visits": 1e4, "line_visits": 1e4}, {"atomic"}),
        ({"delays": {"fixed": 4000.0, "global": 4000.0}}, set()),
        ({"delays": {"fixed": 4000.0, "global": 40.0, "barrier": 4000.0}}, set()),
        ({"unique_bytes": 1e8}, {"dram"}),
    ],
)
def test_a_bound_grows_with_what_its_words_say_and_with_nothing_else(
    more: dict[str, Any], grow: set[str]
) -> None:
    before, after = modelled().bounds_us, modelled(**more).bounds_us
    others = BOUNDS.keys() - {"latency"}
    assert {name for name in others if after.get(name, 0.0) > before.get(name, 0.0)} == grow
    if not grow and "delays" in more:
        assert after["latency"] > before["latency"]


def test_local_memory_counts_in_l2_only_beyond_l1() -> None:
    def grown(frame_bytes: float) -> set[str]:
        with_frame = modelled(local_sectors=1e5, frame_bytes=frame_bytes).bounds_us
        before = modelled().bounds_us
        return {name for name in ("l2", "l2_port") if with_frame[name] > before[name]}

    assert grown(4.0) == set()
    assert grown(4096.0) == {"l2", "l2_port"}


def test_bytes_count_in_dram_where_they_do_not_fit_l2_or_it_is_cold() -> None:
    assert "dram" not in modelled().bounds_us
    assert "dram" in modelled(cold=True).bounds_us
    assert "dram" in modelled(unique_bytes=1e8).bounds_us


def test_starting_blocks_takes_longer_the_more_there_are() -> None:
    few, many = modelled(blocks=1320), modelled(blocks=2640)
    assert many.bounds_us["dispatch"] == pytest.approx(2 * few.bounds_us["dispatch"])


def test_the_limiter_is_named_as_told() -> None:
    (factor,) = (float(text) for text in re.findall(r"more than (\d+) times as long", IN_SHORT))
    launches = [modelled(blocks=1, delays={"fixed": 500.0 * 2**step}) for step in range(12)]
    assert {"latency"} < {launch.limiter for launch in launches}
    for launch in launches:
        bounds = dict(launch.bounds_us)
        latency = bounds.pop("latency")
        largest = max(bounds, key=lambda name: bounds[name])
        assert launch.limiter == ("latency" if latency > factor * bounds[largest] else largest)


def test_rates_in_words_are_those_of_the_model() -> None:
    (per_clock,) = re.findall(r"(\d+) warp instructions a clock", BOUNDS["issue"])
    (atomics,) = re.findall(r"(\d+) a clock from an SM", BOUNDS["atomic"])
    (on_sector,) = re.findall(r"([\d.]+) on one line", BOUNDS["atomic"])
    counts = Counts(blocks=1, warps=8, instructions={"control": 8e4}, atomics=5e4)
    launch, contended = (
        model_launch(
            item, target=find("h200"), grid=(1,), block=(256,), registers=32, shared_bytes=0
        )
        for item in (counts, replace(counts, same_line=7e4))
    )
    clocks = find("h200").clocks_per_us
    assert launch.bounds_us["issue"] * clocks == pytest.approx(8e4 / int(per_clock))
    assert launch.bounds_us["atomic"] * clocks == pytest.approx(5e4 / int(atomics))
    assert contended.bounds_us["atomic"] * clocks == pytest.approx(7e4 / float(on_sector))


def test_what_a_latency_is_spent_on_is_named_with_its_share_and_small_ones_are_not() -> None:
    shares = {"barriers": 0.52, "loads": 0.44, "shuffles": 0.04}
    assert spent_on(shares) == "52 % barriers, 44 % loads"
    assert spent_on({}) == ""


def test_a_hop_from_block_to_block_costs_two_round_trips_to_l2() -> None:
    target = find("h200")
    longer = modelled(hops=100).bounds_us["latency"] - modelled().bounds_us["latency"]
    assert longer * target.clocks_per_us == pytest.approx(200 * target.latencies.l2)
