"""The version of Triton, found without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.evaluate.worker.triton_version import triton_version

BROKEN = "raise RuntimeError('imported')\n"


@pytest.mark.parametrize(
    ("distribution", "version"),
    [("triton-3.5.0", "3.5.0"), ("pytorch_triton-3.6.0+git1", "3.6.0+git1"), ("", "unknown")],
)
def test_the_version_is_that_of_the_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, version: str
) -> None:
    if distribution:
        name, _, number = distribution.partition("-")
        folder = tmp_path / f"{distribution}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {number}\n")
    (tmp_path / "triton.py").write_text(BROKEN)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert triton_version() == version


def test_there_may_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert triton_version() is None
