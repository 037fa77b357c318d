from __future__ import annotations

import os
import pty
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.test_run import ROOT, start, wait_for_line


@pytest.fixture
def run(scripted: Call, task: Path) -> Path:
    scripted("run", task, "--run", "one", "--trials", "4")
    return Path("runs/one")


def test_rm_removes_what_the_run_wrote_and_reports_it(
    scripted: Call, task: Path, run: Path
) -> None:
    scripted("run", task, "--run", "two", "--trials", "2")
    scripted("run", task, "--run", "three", "--trials", "2")
    found = scripted("rm", "one", "runs/two", "--yes")
    assert found.code == 0, found.err
    first, second = found.out.splitlines()
    assert first.startswith("removed runs/one: ") and " files, " in first
    assert second.startswith("removed ") and "runs/two: " in second
    assert [path.name for path in Path("runs").iterdir()] == ["three"]


def test_rm_without_a_terminal_requires_yes(scripted: Call, run: Path) -> None:
    found = scripted("rm", "one")
    assert found.code == 2 and "expected --yes" in found.err and found.out == ""
    assert (run / "run.db").is_file() and (run / "elites").is_dir()


@pytest.mark.parametrize(
    ("reply", "code", "stays"), [(b"y\n", 0, False), (b"n\n", 130, True), (b"\n", 130, True)]
)
def test_rm_on_a_terminal_asks(
    tmp_path: Path, run: Path, reply: bytes, code: int, stays: bool
) -> None:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "evoengine", "rm", "one"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
    ) as process:
        os.close(child)
        os.write(parent, reply)
        _, err = process.communicate(timeout=30)
    os.close(parent)
    assert process.returncode == code and b"remove this run? [y/N]" in err, err
    assert run.exists() is stays


def test_rm_refuses_a_live_run_and_then_removes_none(
    tmp_path: Path, task: Path, scripted: Call, run: Path
) -> None:
    process = start(tmp_path, "run", str(task), "--trials", "200", "--run", "live")
    try:
        wait_for_line(process, "[2/200")
        found = scripted("rm", "one", "live", "--yes")
        assert found.code == 7 and f"process {process.pid} is working on this run" in found.err
        assert run.is_dir() and Path("runs/live/run.db").is_file()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    assert scripted("rm", "live", "--yes").code == 0
    assert not Path("runs/live").exists()


def test_rm_refuses_what_is_not_a_run(scripted: Call, run: Path) -> None:
    Path("runs/photos").mkdir()
    Path("runs/photos/cat.jpg").write_bytes(b"cat")
    found = scripted("rm", "photos", "--yes")
    assert found.code == 7 and "no run 'photos' in runs; known: one" in found.err
    assert "did you mean 'one'" in scripted("rm", "onee", "--yes").err
    with sqlite3.connect("runs/photos/run.db") as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    found = scripted("rm", "photos", "--yes")
    assert found.code == 7 and "not evoengine's; nothing was removed" in found.err
    assert {path.name for path in Path("runs/photos").iterdir()} >= {"cat.jpg", "run.db"}


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_rm_removes_a_damaged_run(scripted: Call, run: Path, content: bytes) -> None:
    (run / "run.db").write_bytes(content)
    assert scripted("rm", "one", "--yes").code == 0
    assert not run.exists()


def test_rm_follows_no_link_and_keeps_files_that_no_run_writes(
    scripted: Call, run: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("gold")
    (run / "trials" / "99").symlink_to(outside)
    (run / "elites" / "link").symlink_to(outside / "precious")
    (run / "notes.txt").write_text("mine")
    found = scripted("rm", "one", "--yes")
    assert found.code == 0 and "kept files that evoengine did not write: notes.txt" in found.out
    assert (outside / "precious").read_text() == "gold"
    assert [path.name for path in run.iterdir()] == ["notes.txt"]


def test_rm_of_a_link_to_a_run_is_refused(scripted: Call, run: Path) -> None:
    Path("runs/link").symlink_to("one")
    for name in ("link", "runs/link", "runs/link/run.db"):
        found = scripted("rm", name, "--yes")
        assert found.code == 2 and "is a symbolic link" in found.err, found
    assert (run / "run.db").is_file()
