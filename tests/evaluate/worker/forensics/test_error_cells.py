"""The map of an error: cells, and the window of single elements."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, compared_output
from evoengine.evaluate.worker.forensics.error_cells import error_map
from tests.evaluate.worker.forensics.mutated import wrong_call

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def compared(shape: tuple[int, ...], bad: torch.Tensor) -> ComparedOutput:
    """An output of `shape` that is 1 + 3 gates where `bad` says so, and should be 1."""
    call, _ = wrong_call("matmul_fp16", "flat", lambda t, _: -t["a"] @ t["b"])
    found = compared_output(call, "out", ("M", "N"))
    reference = torch.ones(shape, dtype=torch.float64)
    limit = found.gate.atol + found.gate.rtol
    return replace(
        found,
        axes=tuple("BMN"[-len(shape) :]),
        value=reference + 3 * limit * bad,
        reference=reference,
        wrong=bad,
        unwritten=torch.zeros_like(bad),
    )


def test_an_output_of_few_elements_is_its_own_detail() -> None:
    bad = torch.zeros(8, 16, dtype=torch.bool)
    bad[2, 5] = True
    found = error_map(compared((8, 16), bad))
    assert found.cells[2] == "." * 5 + "1" + "." * 10
    assert found.detail == ()


def test_the_detail_is_the_first_window_with_most_wrong_elements() -> None:
    bad = torch.zeros(2, 128, 200, dtype=torch.bool)
    bad[0, 3, 7] = True
    bad[1, 64:, 128::2] = True  # every other column of a window and of a narrower one
    found = error_map(compared((2, 128, 200), bad))
    assert (found.rows, found.columns) == (256, 200)
    assert (found.detail_row, found.detail_column) == (192, 128)
    assert found.detail == ("1." * 32,) * 64


def test_the_detail_of_an_edge_is_as_large_as_the_output() -> None:
    bad = torch.zeros(70, 65, dtype=torch.bool)
    bad[64:, 64] = True
    found = error_map(compared((70, 65), bad))
    assert (found.detail_row, found.detail_column) == (64, 64)
    assert found.detail == ("1",) * 6


def test_one_axis_is_folded_into_rows() -> None:
    bad = torch.zeros(10_000, dtype=torch.bool)
    bad[6_401] = True
    found = error_map(compared((10_000,), bad))
    assert (found.rows, found.columns, found.row_axes) == (157, 64, ())
    assert (found.detail_row, found.detail_column) == (64, 0)
    assert found.detail[100 - 64] == ".1" + "." * 62
