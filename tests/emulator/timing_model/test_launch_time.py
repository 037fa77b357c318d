"""The modelled time: what increases it, what does not, and what limits it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.targets import TARGETS, find
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import (
    LATENCY_PARTS,
    ModelledLaunch,
    model_launch,
)

MIB = 1024 * 1024
WORK = Counts(
    blocks=64,
    warps=512,
    instructions={
        "fma": 400_000.0,
        "alu": 100_000.0,
        "lsu": 50_000.0,
        "shuffle": 10_000.0,
        "mufu": 10_000.0,
        "tensor": 1_000.0,
    },
    flops={"f16": 4_096_000.0},
    delays={
        "fixed": 500_000.0,
        "shared": 50_000.0,
        "global": 2_000.0,
        "barrier": 2_000.0,
        "wait": 2_000.0,
    },
    shared_wavefronts=120_000,
    load_requests=2_000,
    load_sectors=40_000,
    block_sectors=20_000,
    store_sectors=2_000,
    copy_sectors=40_000,
    local_sectors=100,
    atomics=100,
    unique_bytes=4 * MIB,
)


def _model(
    counts: Counts = WORK,
    *,
    target: str = "h200",
    blocks: int = 64,
    registers: int = 64,
    shared: int = 32768,
    cold: bool = False,
) -> ModelledLaunch:
    return model_launch(
        counts,
        target=find(target),
        grid=(blocks, 1, 1),
        block=(256, 1, 1),
        registers=registers,
        shared_bytes=shared,
        cold=cold,
    )


@pytest.mark.parametrize(
    "name", ["fma", "alu", "imad", "half", "mufu", "fp64", "lsu", "shuffle", "control"]
)
@pytest.mark.parametrize("target", TARGETS)
def test_more_instructions_never_make_it_faster(name: str, target: str) -> None:
    more = replace(
        WORK, instructions={**WORK.instructions, name: WORK.instructions.get(name, 0.0) + 100_000}
    )
    assert _model(more, target=target).us > _model(target=target).us


@pytest.mark.parametrize(
    "field", ["shared_wavefronts", "store_sectors", "copy_sectors", "lines", "atomics"]
)
def test_more_traffic_never_makes_it_faster(field: str) -> None:
    assert _model(replace(WORK, **{field: 10 * (getattr(WORK, field) or 1e5)})).us > _model().us


@given(st.floats(1, 1000), st.sampled_from(sorted(WORK.delays)))
def test_longer_chains_never_make_it_faster(factor: float, delay: str) -> None:
    longer = replace(WORK, delays={**WORK.delays, delay: WORK.delays[delay] * factor})
    assert _model(longer).us >= _model().us * (1 - 1e-9)


@given(st.floats(0, 400), st.floats(0, 400), st.booleans())
def test_more_bytes_never_make_it_faster(one: float, other: float, cold: bool) -> None:
    few, many = sorted((one, other))
    assert (
        _model(replace(WORK, unique_bytes=few * MIB), cold=cold).us
        <= _model(replace(WORK, unique_bytes=many * MIB), cold=cold).us
    )


def test_data_that_fit_the_l2_cache_come_from_memory_only_when_it_is_cold() -> None:
    assert "dram" not in _model().bounds_us
    assert _model(cold=True).bounds_us["dram"] == pytest.approx(4 * MIB / (0.92 * 4800e3))
    assert _model(cold=True).us > _model().us
    assert "dram" in _model(replace(WORK, unique_bytes=60 * MIB)).bounds_us


def test_the_fuller_the_l2_cache_the_more_comes_from_memory() -> None:
    dram = [
        _model(replace(WORK, unique_bytes=mib * MIB)).bounds_us.get("dram", 0.0)
        for mib in (32, 36, 44, 50, 60)
    ]
    assert dram[0] == 0.0
    assert dram == sorted(dram)
    assert dram[3] == pytest.approx(50 * MIB / (0.92 * 4800e3))


def test_of_local_memory_that_l1_has_no_room_for_nothing_stays() -> None:
    local = replace(WORK, load_sectors=0, block_sectors=0, local_sectors=40_000)
    frames = [
        _model(replace(local, frame_bytes=size)).bounds_us["l2_port"]
        for size in (16.0, 4_000.0, 40_000.0)
    ]
    assert frames[0] < frames[1] == frames[2]


def test_a_sample_of_the_blocks_models_the_same_time() -> None:
    assert _model(WORK.scaled(0.125)).us == pytest.approx(_model().us)


def test_blocks_that_find_a_free_sm_cost_nothing_and_one_more_costs_a_block() -> None:
    assert _model(blocks=132).bounds_us["fma"] == _model(blocks=64).bounds_us["fma"]
    assert _model(blocks=133).bounds_us["fma"] == pytest.approx(
        2 * _model(blocks=132).bounds_us["fma"]
    )
    assert _model(blocks=133).us > _model(blocks=132).us


def test_fewer_resident_blocks_are_more_rounds() -> None:
    roomy, cramped = (
        _model(blocks=132 * 8, shared=24 * 1024),
        _model(blocks=132 * 8, shared=220 * 1024),
    )
    assert (roomy.occupancy.blocks, cramped.occupancy.blocks) == (4, 1)
    assert (roomy.waves, cramped.waves) == (2, 8)
    assert cramped.bounds_us["latency"] > 3.5 * roomy.bounds_us["latency"]
    assert cramped.us > roomy.us


def test_the_longest_block_determines_the_time() -> None:
    even = replace(WORK, most_issued=WORK.issued / 64)
    assert _model(even).us == pytest.approx(_model().us)
    assert _model(replace(even, most_issued=2 * even.most_issued)).us > 1.5 * _model(even).us


def test_the_limiter_is_the_largest_bound() -> None:
    found = _model(replace(WORK, shared_wavefronts=1e8))
    assert found.limiter == "shared"
    assert found.us > max(found.bounds_us.values())
    assert _model(replace(WORK, delays={"global": 1e6})).limiter == "latency"


def test_one_warp_is_bound_by_its_chain() -> None:
    lonely = Counts(blocks=1, warps=1, instructions={"fma": 1000.0}, delays={"fixed": 1000.0})
    found = model_launch(
        lonely, target=find("h200"), grid=(1,), block=(32,), registers=16, shared_bytes=0
    )
    assert found.limiter == "latency"
    assert 4 * 1000 / 1980 < found.bounds_us["latency"] < (4 * 1000 + 2 * 1000) / 1980


@given(st.sampled_from(sorted(TARGETS)), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_shares_of_a_latency_are_its_parts_and_make_up_all_of_it(
    target: str, barriers: float, loads: float
) -> None:
    delays = WORK.delays | {"barrier": barriers, "global": loads}
    shares = _model(replace(WORK, delays=delays), target=target).latency_shares
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) <= set(LATENCY_PARTS)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


@pytest.mark.parametrize(
    ("delay", "part"), [("barrier", "barriers"), ("global", "loads"), ("mufu", "arithmetic")]
)
def test_what_a_block_waits_for_longer_takes_a_larger_share(delay: str, part: str) -> None:
    longer = replace(WORK, delays=WORK.delays | {delay: 5e6})
    before, after = _model().latency_shares, _model(longer).latency_shares
    assert after[part] > before[part]
    assert next(iter(after)) == part


def test_tensor_work_of_any_kind_is_modelled_on_every_target() -> None:
    for target in TARGETS:
        for kind in ("f16", "bf16", "tf32", "fp8", "int8", "fp64"):
            assert _model(replace(WORK, flops={kind: 1e9}), target=target).bounds_us["tensor"] > 0


def test_an_l4_takes_longer_than_an_h200() -> None:
    assert _model(target="l4").us > _model(target="h200").us


def test_counts_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one block"):
        _model(Counts())


def test_a_launch_that_does_not_fit_is_refused() -> None:
    with pytest.raises(LaunchRefused, match="NVIDIA L4: shared"):
        _model(target="l4", shared=200 * 1024)


def test_local_memory_that_fits_l1_is_as_near_as_l1_and_the_rest_is_in_l2() -> None:
    loads = replace(WORK, delays={"local": 1e5}, local_sectors=1e5)
    none = _model(replace(loads, delays={})).us
    small, large = (_model(replace(loads, frame_bytes=size)) for size in (64.0, 4096.0))
    far = _model(replace(loads, delays={"global": 1e5}, load_sectors=0.0, block_sectors=0.0))
    assert none < small.us < large.us
    assert small.us < far.us
    assert large.bounds_us["l2_port"] > small.bounds_us["l2_port"]


def _rows_read_twice(kilobytes: float, blocks: int = 1056) -> ModelledLaunch:
    """Blocks of 8 warps that each load a row of so many KiB, and once more."""
    sectors = kilobytes * 1024 / 32 * blocks
    counts = Counts(
        blocks=blocks,
        warps=8 * blocks,
        instructions={"fma": 8.0 * blocks},
        load_sectors=2 * sectors,
        block_sectors=sectors,
        reloads=sectors,
        reload_span=sectors * kilobytes * 1024 / 32 / 8,
        unique_bytes=kilobytes * 1024 * blocks,
    )
    return _model(counts, blocks=blocks, registers=32, shared=0)


def test_what_l1_has_lost_comes_from_l2_again() -> None:
    short, long = _rows_read_twice(4).bounds_us["l2"], _rows_read_twice(40).bounds_us["l2"]
    assert long == pytest.approx(2 * 10 * short)


def test_what_l2_has_lost_comes_from_dram_again() -> None:
    some, all_ = _rows_read_twice(40).bounds_us, _rows_read_twice(64).bounds_us
    assert all_["dram"] > 64 / 40 * some["dram"]
    once = 64 * 1024 * 1056 / (0.92 * find("h200").dram_gb_s * 1000)
    assert all_["dram"] == pytest.approx(2 * once, rel=1e-3)


def test_lanes_that_swap_at_one_place_wait_for_one_another() -> None:
    some = replace(WORK, visits=1e3, line_visits=1e4, go_on=0.5)
    once, adding = replace(some, go_on=0.0), replace(some, go_on=1.0)
    assert _model().us < _model(once).us < _model(some).us < _model(adding).us
    assert _model(adding).bounds_us["latency"] > _model(some).bounds_us["latency"]


def test_sectors_that_are_asked_for_one_by_one_take_l2_longer() -> None:
    apart = replace(WORK, load_lines=WORK.load_sectors)
    rows = replace(WORK, load_lines=WORK.load_sectors / 4)
    assert _model(apart).bounds_us["l2"] > _model().bounds_us["l2"]
    assert _model(rows) == _model()
    scattered = replace(WORK, atomic_sectors=1000, atomic_lines=1000)
    assert _model(scattered).bounds_us["l2"] > _model().bounds_us["l2"]
    assert _model(replace(scattered, atomic_lines=250)) == _model()
