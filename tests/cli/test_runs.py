from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from evoengine.paths import RunPaths
from evoengine.store.migrations import MIGRATIONS
from evoengine.store.run_folder import open_run
from evoengine.store.run_lock import RunLock, holder_of
from tests.cli.conftest import Call
from tests.cli.test_run import start, wait_for_line
from tests.report.searched_run import searched_run


def listed(call: Call) -> dict[str, dict[str, Any]]:
    found = call("runs", "--json")
    assert found.code == 0, found.err
    return {row["name"]: row for row in json.loads(found.out)}


def test_runs_lists_task_best_of_each_tier_trials_and_state(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "6")
    row = listed(scripted)["one"]
    shown = json.loads(scripted("show", "one", "--json").out)
    assert row["state"] == "complete" and row["problem"] == "" and row["holder"] == ""
    assert (row["task"], row["settled"], row["budget"], row["begun"]) == (
        "scale",
        6,
        6,
        shown["created"],
    )
    assert row["best"] == [elite for elite in shown["elites"] if elite["place"] == 1]
    text = scripted("runs").out
    best = ", ".join(f"{elite['tier']} {elite['speedup']['value']:.2f}x" for elite in row["best"])
    assert best and best in text and "6/6" in text and "complete" in text
    assert row["begun"][:16].replace("T", " ") in text


def test_a_run_is_complete_once_its_elites_are_measured_at_its_end(
    tmp_path: Path, scripted: Call
) -> None:
    searched_run(tmp_path / "whole")
    searched_run(tmp_path / "part", stop_before_finals=True)
    for folder, state in (("whole", "complete"), ("part", "stopped")):
        found = scripted("runs", "--runs-dir", tmp_path / folder / "runs", "--json")
        (row,) = json.loads(found.out)
        assert (row["state"], row["settled"]) == (state, row["budget"])
        text = scripted("runs", "--runs-dir", tmp_path / folder / "runs").out
        marked = any(best["awaits_final"] for best in row["best"])
        assert marked is (state == "stopped") is ("x^" in text)
        assert marked is ("^: what the search saw" in text)


def test_runs_of_the_emulator_have_modelled_times(emulated: Call, task: Path) -> None:
    emulated("run", task, "--run", "one", "--trials", "6")
    text = emulated("runs").out
    assert "us modelled" in text and "x," not in text


def test_a_live_run_is_running_and_a_killed_one_stopped(
    tmp_path: Path, task: Path, call: Call
) -> None:
    process = start(tmp_path, "run", str(task), "--trials", "200", "--run", "one")
    try:
        wait_for_line(process, "[2/200")
        row = listed(call)["one"]
        assert row["state"] == "running" and row["holder"] == f"process {process.pid}"
        assert 2 <= row["settled"] < row["budget"] == 200
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    row = listed(call)["one"]
    assert row["state"] == "stopped" and row["holder"] == "" and row["settled"] >= 2


def test_folders_without_a_run_are_left_out_and_damaged_runs_say_why(
    scripted: Call, task: Path
) -> None:
    for name in ("good", "damaged", "newer", "bare", "odd"):
        scripted("run", task, "--run", name, "--trials", "2")
    folder = Path("runs")
    (folder / "no run").mkdir()
    (folder / "a file").write_text("text")
    (folder / "damaged" / "run.db").write_bytes(b"garbage" * 1000)
    # from a whole log the database could be read
    (folder / "damaged" / "run.db-wal").unlink(missing_ok=True)
    with sqlite3.connect(folder / "newer" / "run.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    (folder / "bare" / "run.db").unlink()
    with sqlite3.connect(folder / "odd" / "run.db") as connection:
        connection.execute("UPDATE run SET body = json_set(body, '$.config.places', 'three')")
    (folder / "loop").symlink_to("loop")
    found = listed(scripted)
    assert set(found) == {"good", "damaged", "newer", "bare", "odd"}
    assert found["good"]["state"] == "complete"
    assert {name: row["state"] for name, row in found.items() if name != "good"} == dict.fromkeys(
        ("damaged", "newer", "bare", "odd"), "unreadable"
    )
    assert "not a database" in found["damaged"]["problem"]
    assert "schema version" in found["newer"]["problem"]
    assert found["bare"]["problem"] == "run.db is missing, but other files of a run are there"
    assert "places" in found["odd"]["problem"]
    text = scripted("runs").out
    assert "unreadable" in text and "complete" in text


def test_a_run_whose_device_is_starting_is_running(scripted: Call) -> None:
    with open_run(RunPaths(Path("runs") / "young"), create=True):
        row = listed(scripted)["young"]
        assert (row["state"], row["problem"]) == ("running", "its device is starting")
    row = listed(scripted)["young"]
    assert (row["state"], row["problem"]) == (
        "unreadable",
        "the run was never started; start it again under the same name",
    )


def test_an_empty_folder_is_reported_and_a_file_is_refused(call: Call, tmp_path: Path) -> None:
    none = call("runs")
    assert (none.code, none.out) == (0, "") and "no runs in runs" in none.err
    assert call("runs", "--json").out == "[]\n"
    (tmp_path / "afile").write_text("")
    found = call("runs", "--runs-dir", "afile")
    assert found.code == 7 and "afile: expected a folder that holds runs, found a file" in found.err


def test_reading_a_lock_does_not_block_others(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    assert holder_of(path) is None and not path.exists()
    for _ in range(100):
        lock = RunLock(path)
        assert holder_of(path) is not None
        lock.release()
        assert holder_of(path) is None


@pytest.mark.parametrize("json_wanted", [True, False])
def test_listing_changes_nothing_in_a_run(scripted: Call, task: Path, json_wanted: bool) -> None:
    scripted("run", task, "--run", "one", "--trials", "3")

    def state() -> dict[str, tuple[int, bytes]]:
        files = [
            path
            for path in Path("runs/one").iterdir()
            if path.is_file() and not path.name.endswith(("-wal", "-shm"))
        ]
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    scripted("runs", *(["--json"] if json_wanted else []))
    assert state() == before
