"""The least time of a case on a device."""

from __future__ import annotations

import pytest

from evoengine.candidate.moved_bytes import bytes_of
from evoengine.evaluate.floor import (
    MARGIN,
    DevicePeaks,
    Floor,
    floors_of,
    refuse_below_floor,
)
from evoengine.evaluate.worker.candidate_failures import BelowFloor
from evoengine.paths import find_task
from evoengine.records import Status
from evoengine.task.load import load_task
from evoengine.task.schema import Task, Work

PEAKS = DevicePeaks(
    l2_bytes=50 * 2**20,
    l2_bytes_per_s=5e12,
    dram_bytes_per_s=4e12,
    launch_us=1.2,
    flops_per_s={"f16": 800e12, "fp8": 1600e12},
)


def task(name: str) -> Task:
    return load_task(find_task(name))


def with_work(name: str, **keys: str) -> Task:
    return task(name).model_copy(update={"work": Work.model_validate(keys)})


def test_every_tensor_is_moved_once() -> None:
    elements = 8 * 512 * 64
    assert bytes_of(task("sdpa_h200"), "mission") == (3 * 2 * elements, 2 * elements)
    assert bytes_of(task("layernorm"), "odd") == (4 * (7 * 333 + 2 * 333), 4 * 7 * 333)
    assert bytes_of(task("matmul_fp16"), "single") == (4, 2)


def test_inputs_that_need_not_be_read_do_not_count() -> None:
    assert bytes_of(with_work("layernorm", input_bytes="4*N*C"), "odd")[0] == 4 * 7 * 333
    whole = bytes_of(task("layernorm"), "odd")[0]
    assert bytes_of(with_work("layernorm", input_bytes="8*N*C"), "odd")[0] == whole


def test_tensors_that_are_changed_in_place_count_only_as_declared() -> None:
    assert bytes_of(task("adamw"), "odd") == (16 * 100003, 12 * 100003)
    # of a cache, a call writes a row: nobody knows how much of a tensor in place is needed
    assert bytes_of(with_work("adamw", flops="N", unit="fp32"), "odd") == (4 * 100003, 0)
    undeclared = task("adamw").model_copy(update={"work": None})
    assert bytes_of(undeclared, "odd") == (4 * 100003, 0)
    whole = with_work("adamw", input_bytes="40*N", output_bytes="40*N")
    assert bytes_of(whole, "odd") == (16 * 100003, 12 * 100003)


def test_a_small_case_takes_one_launch() -> None:
    for floor in floors_of(task("matmul_fp16"), "single", "fp16", PEAKS):
        assert (floor.us, floor.reason) == (1.2, "one launch")


def test_hot_inputs_come_from_l2_and_cold_ones_from_dram() -> None:
    hot, cold = floors_of(task("layernorm"), "rows", "fp32", PEAKS)
    read, written = bytes_of(task("layernorm"), "rows")
    assert hot == Floor(1e6 * (read + written) / 5e12, f"{read + written} bytes at 5 TB/s of L2")
    slow = PEAKS.model_copy(update={"dram_bytes_per_s": 1e12})
    hot, cold = floors_of(task("layernorm"), "rows", "fp32", slow)
    assert cold == Floor(1e6 * read / 1e12, f"{read} bytes at 1 TB/s of DRAM")
    assert hot.us < cold.us


def test_hot_inputs_larger_than_l2_come_from_dram_in_part() -> None:
    peaks = PEAKS.model_copy(update={"l2_bytes": 2**20, "dram_bytes_per_s": 1e12})
    hot, cold = floors_of(task("layernorm"), "rows", "fp32", peaks)
    read, _ = bytes_of(task("layernorm"), "rows")
    assert hot.us == pytest.approx(1e6 * (read - 2**20) / 1e12)
    assert cold.us == pytest.approx(1e6 * read / 1e12)


def test_declared_operations_take_the_peak_of_the_units_that_a_tier_may_use() -> None:
    flops = 4 * 2 * 8 * 2048 * 2048 * 128
    half = floors_of(task("sdpa_h200"), "wide_head", "fp16", PEAKS).hot
    assert half.us == pytest.approx(1e6 * flops / 800e12)
    assert half.reason == f"{flops:.3g} operations at 800 Tflop/s of f16"
    assert floors_of(task("sdpa_h200"), "wide_head", "fp8", PEAKS).hot.us == half.us / 2
    square = floors_of(task("matmul_fp16"), "large", "fp16", PEAKS).cold
    assert square.us == pytest.approx(1e6 * 2 * 4096**3 / 800e12)


def test_a_causal_mask_leaves_what_no_kernel_can_skip() -> None:
    full, causal = (
        floors_of(task("sdpa_h200"), case, "fp16", PEAKS).hot.us for case in ("long", "long_causal")
    )
    assert causal == pytest.approx(full * (2048 + 1) / (2 * 2048))


def test_a_unit_that_was_not_measured_gives_no_bound() -> None:
    peaks = PEAKS.model_copy(update={"flops_per_s": {}})
    assert "L2" in floors_of(task("sdpa_h200"), "wide_head", "fp16", peaks).hot.reason


def test_a_time_below_the_floor_is_refused_and_one_at_it_is_not() -> None:
    floor = Floor(10.0, "1e+09 operations at 100 Tflop/s of f16")
    for time_us in (1e6, 10.0, 10.0 * MARGIN):
        refuse_below_floor(time_us, floor)
    with pytest.raises(BelowFloor, match="a call took 5 us, which cannot be: 1e") as caught:
        refuse_below_floor(5.0, floor)
    assert caught.value.status is Status.cheat
