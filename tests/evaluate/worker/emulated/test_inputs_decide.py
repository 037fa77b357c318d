"""Kernels that are right on easy inputs only, on the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluate.easy_inputs import KERNELS, expect_refusals, write_task
from tests.evaluate.worker.emulated.judging import verdicts


@pytest.mark.sampled("name", one_in=2)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_is_right_on_easy_inputs_only_is_refused(tmp_path: Path, name: str) -> None:
    honest, wrong = KERNELS[name]
    assert honest not in wrong
    expect_refusals(name, verdicts(write_task(tmp_path, name), honest, *wrong))
