from __future__ import annotations

import pytest

from evoengine.candidate.arch import DeviceLimits, limits_of, limits_of_arch
from evoengine.records import Environment


@pytest.mark.parametrize(
    ("arch", "shared_bytes", "sm_count"),
    [
        ("sm_89", 101376, 58),
        ("sm_90", 232448, 132),
        ("sm_90a", 232448, 132),
        ("sm_80", 166912, 108),
        ("sm_35", 49152, 1),
    ],
)
def test_limits_of_an_architecture(arch: str, shared_bytes: int, sm_count: int) -> None:
    """101,376 and 232,448 bytes are what an L4 and an H200 report."""
    assert limits_of_arch(arch) == DeviceLimits(arch, shared_bytes, sm_count)


def test_limits_of_a_device_come_from_its_environment() -> None:
    environment = Environment(
        device="cuda:0 NVIDIA L4",
        kind="cuda",
        arch="sm_89",
        sm_count=58,
        max_shared_bytes=101376,
        l2_bytes=1,
        memory_bytes=1,
        versions={},
    )
    assert limits_of(environment) == limits_of_arch("sm_89")
    assert limits_of(environment).scope() == {
        "MAX_SHARED_BYTES": 101376,
        "SM_COUNT": 58,
        "WARP_SIZE": 32,
    }
