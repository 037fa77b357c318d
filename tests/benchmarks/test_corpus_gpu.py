"""The comparison of the emulator with what a GPU recorded tells agreement from difference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import corpus_gpu
from tests.emulator.corpus import Kernel, load_kernel


@pytest.fixture
def kernel() -> Kernel:
    return load_kernel("transpose_naive")


def recording(
    folder: Path, kernel: Kernel, error: float = 0.0, of_another_source: bool = False
) -> Path:
    """A file as `record` writes it, with the expected results for a GPU's."""
    arrays = {
        f"corpus/{kernel.name}/{case.name}/1": np.ascontiguousarray(case.expected[1])
        + np.float32(error)
        for case in kernel.cases
    }
    cases = {
        f"{kernel.name}/{case.name}": "x" if of_another_source else corpus_gpu.digest(kernel, case)
        for case in kernel.cases
    }
    file = folder / "gpu.npz"
    np.savez_compressed(
        file,
        **arrays,
        meta=np.array(json.dumps({"machine": {"device": "Expected"}, "cases": cases})),
    )
    return file


def test_equal_results_agree_and_the_document_says_so(tmp_path: Path, kernel: Kernel) -> None:
    document = tmp_path / "table.md"
    assert corpus_gpu.compare([kernel], recording(tmp_path, kernel), document)
    text = document.read_text(encoding="utf-8")
    assert "3 of 3 results agree as asked, 3 of them bit for bit." in text
    assert "device Expected" in text


def test_a_difference_is_told_and_fails(
    tmp_path: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not corpus_gpu.compare([kernel], recording(tmp_path, kernel, error=1e-3), None)
    assert "DIFFERS" in capsys.readouterr().out


def test_results_of_another_source_are_not_compared(
    tmp_path: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not corpus_gpu.compare(
        [kernel], recording(tmp_path, kernel, of_another_source=True), None
    )
    assert "CHANGED SINCE" in capsys.readouterr().out


def test_a_case_without_recording_fails(
    tmp_path: Path, kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recording(tmp_path, Kernel(kernel.name, kernel.source, kernel.cases[:1]))
    assert not corpus_gpu.compare([kernel], file, None)
    assert "NOT RECORDED" in capsys.readouterr().out
