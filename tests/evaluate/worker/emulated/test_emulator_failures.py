"""Errors of the emulator as failures of the candidate that it was running."""

from __future__ import annotations

import pytest

from evoengine.emulator import emulator_errors
from evoengine.evaluate.worker.candidate_failures import (
    DeviceTrap,
    EmulatorFailure,
    UnsupportedKernel,
)
from evoengine.evaluate.worker.emulated.emulated_program import as_candidate_failures
from evoengine.records import Status


@pytest.mark.parametrize(
    "error",
    [
        KeyError("%r7"),
        RecursionError("too deep"),
        AssertionError(),
        ZeroDivisionError(),
        ValueError("odd"),
    ],
)
def test_a_bug_of_the_emulator_makes_a_kernel_unsupported_and_the_process_is_replaced(
    error: Exception,
) -> None:
    with (
        pytest.raises(
            EmulatorFailure, match=f"the emulator fails on this kernel: {type(error).__name__}"
        ) as found,
        as_candidate_failures(),
    ):
        raise error
    assert found.value.status is Status.unsupported and not found.value.healthy
    assert "Traceback" in found.value.detail


@pytest.mark.parametrize("error", [MemoryError("full"), OSError(28, "No space left on device")])
def test_a_lack_of_memory_or_disk_is_no_fault_of_the_kernel(error: Exception) -> None:
    with pytest.raises(type(error)), as_candidate_failures():
        raise error


def test_what_the_emulator_says_of_a_kernel_stays_as_it_is() -> None:
    with pytest.raises(DeviceTrap, match="trap"), as_candidate_failures():
        raise emulator_errors.Trapped("trap")
    with (
        pytest.raises(UnsupportedKernel, match="does not support") as found,
        as_candidate_failures(),
    ):
        raise emulator_errors.Unsupported("wgmma")
    assert found.value.healthy
