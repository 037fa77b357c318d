"""A log that SQLite would drop in silence is refused; one that a kill leaves is not. SQLite itself
made every log here.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.errors import StoreError
from evoengine.protocols import ProposalRow
from evoengine.store.sqlite_store import SqliteStore
from evoengine.store.write_ahead_log import _checksum, log_of, refuse_damaged_log
from tests.store.rows_of_a_run import info, proposal

HEADER, FRAME_HEADER = 32, 24
KILLED = """
import os, signal, sys
from pathlib import Path
from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import info, proposal
store = SqliteStore(Path(sys.argv[1]), create=True)
store.append(info())
store.append(proposal(0))
store.append(proposal(1))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The database of a process that was killed: all of its rows stand in the log alone."""
    path = tmp_path / "run.db"
    subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[2], check=False
    )
    assert log_of(path).stat().st_size > HEADER
    return path


def rows(path: Path) -> int:
    with SqliteStore(path) as store:
        return sum(1 for _ in store.trials())


def change(path: Path, offset: int, data: bytes) -> None:
    with log_of(path).open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_the_log_of_a_killed_process_is_read(path: Path) -> None:
    assert rows(path) == 2


@pytest.mark.parametrize("torn", [1, FRAME_HEADER, 4096])
def test_a_log_whose_last_frames_are_torn_is_read_up_to_there(path: Path, torn: int) -> None:
    log = log_of(path)
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - torn)
    assert rows(path) == 1


def test_a_log_whose_last_frame_is_noise_is_read_up_to_there(path: Path) -> None:
    change(path, log_of(path).stat().st_size - 4096, b"\xa5" * 4096)
    assert rows(path) == 1


@pytest.mark.parametrize("kept", [0, HEADER, HEADER + FRAME_HEADER])
def test_a_log_that_was_only_begun_is_accepted(tmp_path: Path, path: Path, kept: int) -> None:
    with SqliteStore(path) as store:
        store.append(proposal(2))
        shutil.copy(log_of(path), tmp_path / "begun")
    with (tmp_path / "begun").open("r+b") as file:
        file.truncate(kept)
    (tmp_path / "begun").rename(log_of(path))
    assert rows(path) >= 2


def test_a_first_header_that_a_power_cut_left_empty_is_accepted(path: Path) -> None:
    assert rows(path) == 2
    log_of(path).write_bytes(bytes(HEADER))
    assert rows(path) == 2


DAMAGE = {
    "garbage": (
        lambda log: log.write_bytes(b"garbage!" * 1000),
        r"got 8000 bytes with the magic number 0x67617262 \(a log has 0x377f0682",
    ),
    "zeros": (
        lambda log: log.write_bytes(bytes(log.stat().st_size)),
        "with the magic number 0x00000000",
    ),
    "short": (
        lambda log: log.write_bytes(log.read_bytes()[:20]),
        r"got 20 bytes with a header cut short \(a whole one has 32\)",
    ),
    "salt": (
        lambda log: log.write_bytes(_with(log, 16, b"\xff\x00\xff\x00")),
        "with a wrong checksum in its header",
    ),
    "checksum": (
        lambda log: log.write_bytes(_with(log, 28, b"\x12\x34\x56\x78")),
        "with a wrong checksum in its header",
    ),
    "version": (
        lambda log: log.write_bytes(_signed(_with(log, 4, struct.pack(">I", 3007001)))),
        "with the format version 3007001",
    ),
}


def _with(log: Path, offset: int, data: bytes) -> bytes:
    whole = log.read_bytes()
    return whole[:offset] + data + whole[offset + len(data) :]


def _signed(whole: bytes) -> bytes:
    return whole[:24] + _checksum(whole[:24], "little") + whole[32:]


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_log_that_sqlite_would_drop_silently_is_refused_with_the_choice(
    path: Path, kind: str
) -> None:
    damage, words = DAMAGE[kind]
    damage(log_of(path))
    before = {
        file.name: file.read_bytes()
        for file in path.parent.iterdir()
        if not file.name.endswith("-shm")
    }
    for read_only in (False, True):
        with pytest.raises(
            StoreError,
            match=rf"run\.db-wal: expected SQLite's write-ahead log of run\.db, .*{words}",
        ) as caught:
            SqliteStore(path, read_only=read_only)
        assert f"mv {path}-wal {path}-wal.damaged" in str(caught.value)
    assert {
        file.name: file.read_bytes()
        for file in path.parent.iterdir()
        if not file.name.endswith("-shm")
    } == before


def test_after_the_renaming_that_the_message_names_the_database_opens(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SqliteStore(path, create=True) as store:
        store.append(info(), proposal(0))
    log_of(path).write_bytes(b"garbage!" * 1000)
    with pytest.raises(StoreError, match="magic number"):
        SqliteStore(path)
    log_of(path).rename(tmp_path / "run.db-wal.damaged")
    assert rows(path) == 1


def test_a_log_of_a_big_endian_machine_is_read(path: Path) -> None:
    """Its checksums are taken anew over header and frames, so that SQLite is the judge of ours."""
    whole = log_of(path).read_bytes()
    head = struct.pack(">I", 0x377F0683) + whole[4:24]
    made = head + _checksum(head, "big")
    running, size = made[24:], FRAME_HEADER + 4096
    for start in range(HEADER, len(whole) - size + 1, size):
        frame = whole[start : start + size]
        running = _running(running, frame[:8] + frame[FRAME_HEADER:])
        made += frame[:16] + running + frame[FRAME_HEADER:]
    log_of(path).write_bytes(made)
    path.with_name("run.db-shm").unlink()
    assert rows(path) == 2


def _running(before: bytes, data: bytes) -> bytes:
    first, second = struct.unpack(">2I", before)
    words = struct.unpack(f">{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)


def test_what_sqlite_does_with_a_garbage_log_is_why_it_is_refused(path: Path) -> None:
    log_of(path).write_bytes(b"garbage!" * 1000)
    connection = sqlite3.connect(path)
    # every commit is gone, and no error
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    connection.close()


def test_the_log_of_a_live_run_can_be_read(path: Path) -> None:
    with SqliteStore(path) as writer:
        for trial in range(2, 60):
            writer.append(proposal(trial))
            refuse_damaged_log(path)
            with SqliteStore(path, read_only=True) as reader:
                assert reader.get(ProposalRow, trial) == proposal(trial)


@pytest.mark.parametrize("empty", [True, False])
def test_a_log_without_its_database_is_not_deleted(path: Path, empty: bool) -> None:
    path.unlink()
    if empty:
        path.touch()
    held = log_of(path).read_bytes()
    with pytest.raises(
        StoreError,
        match=(
            rf"run\.db: expected the database of run\.db-wal, got {'an empty' if empty else 'no'}"
            rf" file: .*{len(held)} bytes"
        ),
    ):
        SqliteStore(path, create=True)
    assert log_of(path).read_bytes() == held
