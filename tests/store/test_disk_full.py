"""A disk without space: said in one line, and nothing committed is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow
from evoengine.records import RunInfo
from evoengine.store.run_folder import open_run
from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import info, proposal

FULL = "the disk is full; no committed data is lost: free some space, then resume the run"


def fill(store: SqliteStore) -> int:
    """Appends until it fails; the number of the trial that did not fit."""
    for trial in count(1):
        try:
            store.append(proposal(trial, os.urandom(3000).hex()))
        except StoreError as error:
            assert FULL in str(error)
            return trial
    raise AssertionError


def test_a_full_database_keeps_what_it_has_and_continues_with_more_space(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "run.db", create=True) as store:
        store.append(info())
        store._connection.execute("PRAGMA max_page_count = 60")
        missing = fill(store)
        assert [trial for trial, _ in store.trials()] == list(range(1, missing))
        store._connection.execute("PRAGMA max_page_count = 100000")
        store.append(proposal(missing))
        assert store.get(RunInfo) == info()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if not ran("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)):
        pytest.skip("only root can mount a tiny disk")
    yield place
    assert ran("umount", "-l", str(place))


def ran(program: str, *arguments: str) -> bool:
    """Whether there is such a program and it succeeded."""
    path = shutil.which(program)
    return (
        path is not None
        and subprocess.run([path, *arguments], capture_output=True, check=False).returncode == 0
    )


def test_a_full_disk_keeps_what_it_has_and_continues_with_more_space(tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    with open_run(RunPaths(tiny_disk / "run"), create=True) as run:
        run.store.append(info())
        missing = fill(run.store)
    ballast.unlink()
    with open_run(RunPaths(tiny_disk / "run")) as run:
        assert [trial for trial, _ in run.store.trials()] == list(range(1, missing))
        run.store.append(proposal(missing))
        assert run.store.get(ProposalRow, missing) == proposal(missing)


def test_a_run_cannot_begin_on_a_full_disk(tiny_disk: Path) -> None:
    with (
        pytest.raises(OSError, match="No space left"),
        (tiny_disk / "ballast").open("wb", buffering=0) as file,
    ):
        while True:
            file.write(bytes(4096))
    with pytest.raises(StoreError, match=FULL):
        open_run(RunPaths(tiny_disk / "run"), create=True)


def test_a_run_cannot_begin_on_a_read_only_disk_but_can_be_read_there(tiny_disk: Path) -> None:
    with open_run(RunPaths(tiny_disk / "old"), create=True) as run:
        run.store.append(info())
    assert ran("mount", "-o", "remount,ro", str(tiny_disk))
    with pytest.raises(
        StoreError,
        match=r"it cannot be written; choose another place with --runs-dir.*Read-only file system",
    ):
        open_run(RunPaths(tiny_disk / "run"), create=True)
    with pytest.raises(StoreError, match="it cannot be written"):
        open_run(RunPaths(tiny_disk / "old"))
    with open_run(RunPaths(tiny_disk / "old"), read_only=True) as run:
        assert run.store.get(RunInfo) == info()
