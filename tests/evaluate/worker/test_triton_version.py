"""The version of Triton, found without importing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.evaluate.worker.triton_version import triton_version

BROKEN = "raise RuntimeError('imported')\n"
NONE = """
import sys
from evoengine.evaluate.worker.triton_version import triton_version
sys.path = [sys.argv[1]]
print(triton_version())
"""


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


def test_there_may_be_none(tmp_path: Path) -> None:
    """In a process of its own: what was imported before may be found without a path."""
    found = subprocess.run(
        [sys.executable, "-c", NONE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "None\n"
