"""Counts add up, and samples scale."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from evoengine.emulator.timing_model.counts import CodePiece, Counts

SAMPLE = Counts(
    blocks=2,
    warps=8,
    instructions={"fma": 100.0, "lsu": 10.0},
    flops={"f16": 4096.0},
    delays={"fixed": 50.0},
    shared_wavefronts=12,
    load_sectors=40,
    block_sectors=16,
    store_sectors=8,
    copy_sectors=4,
    unique_bytes=1024,
    most_issued=60,
)


def test_counts_add_up() -> None:
    found = SAMPLE + Counts(
        blocks=1, warps=4, instructions={"fma": 1.0, "alu": 2.0}, unique_bytes=10, most_issued=99
    )
    assert found.instructions == {"fma": 101, "lsu": 10, "alu": 2}
    assert (found.blocks, found.warps, found.unique_bytes, found.most_issued) == (3, 12, 1034, 99)
    assert found.flops == SAMPLE.flops


def test_a_sample_scales_to_the_grid_except_for_values_of_the_launch() -> None:
    found = SAMPLE.scaled(8)
    assert (found.blocks, found.shared_wavefronts, found.issued) == (16, 96, 880)
    assert (found.unique_bytes, found.most_issued) == (1024, 60)


def test_nothing_is_neutral() -> None:
    assert SAMPLE + Counts() == SAMPLE
    assert SAMPLE.scaled(1) == SAMPLE


def test_a_negative_factor_is_refused() -> None:
    with pytest.raises(ValueError, match="factor >= 0, got -1"):
        SAMPLE.scaled(-1)


def test_l1_keeps_repeated_loads_from_l2_but_neither_stores_nor_copies() -> None:
    assert SAMPLE.l2_sectors == 16 + 8 + 4
    assert Counts(load_sectors=40).l2_sectors == 40  # repeated loads of a block were not counted


def test_code_counted_as_a_whole_is_one_piece() -> None:
    (piece,) = SAMPLE.code
    assert (piece.times, piece.instructions["fma"], piece.wavefronts) == (8, 12.5, 1.5)
    assert Counts().code == ()


def test_counts_survive_serialisation() -> None:
    counts = replace(
        SAMPLE, pieces=(CodePiece(3.0, {"fma": 2.0}), CodePiece(1.0, delays={"fixed": 1.0}))
    )
    assert Counts.from_dict(json.loads(json.dumps(asdict(counts)))) == counts
    assert counts.scaled(2).pieces[0].times == 6
    assert (counts + counts).pieces == counts.pieces * 2
