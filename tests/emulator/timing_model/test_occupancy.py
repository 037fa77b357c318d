"""Occupancy against facts of NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest

from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.targets import find
from evoengine.emulator.timing_model.occupancy import occupancy


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ("a100", 256, 32, 0, 8, "warps"),  # 64 warps / 8: full
        ("a100", 256, 64, 0, 4, "registers"),  # 65536 / (64 x 256)
        ("a100", 256, 65, 0, 3, "registers"),  # 65 are given as 72
        ("a100", 32, 16, 0, 32, "blocks"),
        ("a100", 1024, 32, 0, 2, "warps"),
        ("a100", 128, 168, 0, 3, "registers"),
        ("l4", 256, 40, 0, 6, "warps"),  # 48 warps / 8
        ("l4", 32, 16, 0, 24, "blocks"),
        ("a10", 32, 16, 0, 16, "blocks"),
        ("h100", 128, 32, 100 * 1024, 2, "shared"),  # 228 KiB / 101 KiB
        ("h100", 128, 32, 114 * 1024, 1, "shared"),  # each block has 1 KiB more: two do not fit
        ("h100", 128, 32, 113 * 1024, 2, "shared"),
        ("l4", 128, 32, 99 * 1024, 1, "shared"),
        ("t4", 1024, 64, 0, 1, "warps"),
    ],
)
def test_blocks_that_fit_on_an_sm(
    name: str, threads: int, registers: int, shared: int, blocks: int, limiter: str
) -> None:
    found = occupancy(find(name), threads=threads, registers=registers, shared_bytes=shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // 32)
    assert 0 < found.share <= 1


def test_a_warp_has_its_registers_in_one_quarter_of_an_sm() -> None:
    # 2 warps of 8160 in each quarter of 16384
    assert occupancy(find("a100"), threads=32, registers=255, shared_bytes=0).blocks == 8


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "match"),
    [(1024, 128, 0, "registers"), (64, 32, 228 * 1024, "shared"), (4096, 32, 0, "warps")],
)
def test_a_block_that_does_not_fit_is_refused_with_the_reason(
    threads: int, registers: int, shared: int, match: str
) -> None:
    with pytest.raises(LaunchRefused, match=f"NVIDIA H200: {match}"):
        occupancy(find("h200"), threads=threads, registers=registers, shared_bytes=shared)


def test_senseless_figures_are_refused() -> None:
    with pytest.raises(ValueError, match="threads >= 1"):
        occupancy(find("h200"), threads=0, registers=32, shared_bytes=0)
