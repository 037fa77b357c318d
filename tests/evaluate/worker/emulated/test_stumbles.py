"""What a failure of the emulator says about the candidate that it was running."""

from __future__ import annotations

import pytest

from evoengine.emulator import emulator_errors
from evoengine.evaluate.worker.candidate_failures import DeviceTrap, Lacking, Stumbled
from evoengine.evaluate.worker.emulated.emulated_program import as_findings
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
def test_a_stumble_over_a_kernel_is_unsupported_and_the_process_is_replaced(
    error: Exception,
) -> None:
    with (
        pytest.raises(
            Stumbled, match=f"the emulator fails on this kernel: {type(error).__name__}"
        ) as found,
        as_findings(),
    ):
        raise error
    assert found.value.status is Status.unsupported and not found.value.healthy
    assert "Traceback" in found.value.detail


@pytest.mark.parametrize("error", [MemoryError("full"), OSError(28, "No space left on device")])
def test_what_the_machine_lacks_is_not_the_kernels(error: Exception) -> None:
    with pytest.raises(type(error)), as_findings():
        raise error


def test_what_the_emulator_says_of_a_kernel_stays_as_it_is() -> None:
    with pytest.raises(DeviceTrap, match="trap"), as_findings():
        raise emulator_errors.Trapped("trap")
    with pytest.raises(Lacking, match="does not support") as found, as_findings():
        raise emulator_errors.Unsupported("wgmma")
    assert found.value.healthy
