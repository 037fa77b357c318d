"""The least times on a device whose times are modelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.emulator.targets import find
from evoengine.evaluate.worker.emulated.modelled_peaks import modelled_peaks
from evoengine.records import Status
from tests.evaluate.worker.emulated.judging import judged

DOUBLE = """\
/* evoengine
name: double
precision: exact
launches:
  - kernel: k
    grid: ["N / 256"]
    block: [256]
    args: [x, out]
*/
extern "C" __global__ void k(const int* x, int* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize(
    ("name", "unit", "tflops"),
    [("l4", "fp32", 30.3), ("l4", "f16", 121), ("l4", "fp8", 242), ("a100", "fp64", 19.5)],
)
def test_peaks_are_those_of_the_data_sheet(name: str, unit: str, tflops: float) -> None:
    peaks = modelled_peaks(find(name))
    assert peaks.flops_per_s[unit] / 1e12 == pytest.approx(tflops, rel=0.01)


def test_a_unit_that_the_device_lacks_has_no_peak() -> None:
    assert "fp8" not in modelled_peaks(find("a100")).flops_per_s


def test_a_modelled_time_comes_with_the_least_one_and_is_no_less(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "double", DOUBLE)[0]
    assert verdict.status is Status.correct, verdict.reason
    case, target = verdict.modelled[0], find("l4")
    moved = 2 * 4 * 65536
    assert case.floor_us == max(target.launch_us, 1e6 * moved / (target.l2_gb_s * 1e9))
    assert case.floor_us <= case.us
