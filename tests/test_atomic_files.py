from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evoengine import atomic_files


def test_a_file_is_written_in_full_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "elites" / "fp16" / "1" / "kernel.cu"
    atomic_files.write_text(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    atomic_files.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "verdict.json"
    path.write_text("old")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    with pytest.raises(OSError, match="report"):
        atomic_files.write_text(tmp_path / "report", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_others_may_read_what_the_user_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        atomic_files.write_text(tmp_path / "kernel.cu", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "kernel.cu").stat().st_mode) == 0o644


def test_a_name_as_long_as_a_name_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    atomic_files.write_text(path, "x")
    assert path.read_text() == "x"
