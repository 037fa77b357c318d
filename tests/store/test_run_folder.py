"""Opening a run: who may, and what is said to those who may not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.errors import RunLocked, StoreError
from evoengine.paths import RunPaths
from evoengine.records import RunInfo
from evoengine.store.run_folder import open_run
from tests.store.rows_of_a_run import info, proposal

HOLD = """
import sys
from pathlib import Path
from evoengine.paths import RunPaths
from evoengine.store.run_folder import open_run
run = open_run(RunPaths(Path(sys.argv[1])))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    paths = RunPaths(tmp_path / "runs" / "sdpa_l4")
    with open_run(paths, create=True) as run:
        run.store.append(info())
    return paths


def test_a_run_is_created_closed_and_opened_again(paths: RunPaths) -> None:
    with open_run(paths) as run:
        assert run.store.get(RunInfo) == info()
        assert paths.lock.read_text() == f"{os.getpid()}\n"
    run.close()


def test_a_missing_run_is_answered_with_similar_names(paths: RunPaths) -> None:
    with pytest.raises(
        StoreError,
        match=(
            r"no run 'sdpa_14' in \S+runs; did you mean 'sdpa_l4'\? known: sdpa_l4; `evoengine show"
            r" sdpa_l4 --runs-dir \S+runs` shows it"
        ),
    ):
        open_run(RunPaths(paths.root.parent / "sdpa_14"))
    with pytest.raises(StoreError, match=r"no run 'x' in \S+nowhere; known: none"):
        open_run(RunPaths(paths.root.parent / "nowhere" / "x"), read_only=True)
    assert not (paths.root.parent / "nowhere").exists()


def test_a_name_that_is_taken_is_refused_with_the_command_that_resumes(paths: RunPaths) -> None:
    with pytest.raises(
        StoreError,
        match=(
            r"run 'sdpa_l4' already exists; continue it with `evoengine resume sdpa_l4 --runs-dir"
            r" \S+runs`"
        ),
    ):
        open_run(paths, create=True)
    open_run(paths).close()


def test_a_run_killed_before_its_settings_were_stored_can_be_created_again_but_not_resumed(
    tmp_path: Path,
) -> None:
    paths = RunPaths(tmp_path / "run")
    open_run(paths, create=True).close()
    with pytest.raises(StoreError, match="the run was never started"):
        open_run(paths)
    open_run(paths, create=True).close()


def test_a_second_process_is_refused_with_the_first_ones_number_until_that_is_killed(
    paths: RunPaths,
) -> None:
    command = [sys.executable, "-c", HOLD, str(paths.root)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin and holder.stdout
    with holder, holder.stdin, holder.stdout:
        assert holder.stdout.readline() == "open\n"
        for create in (False, True):
            with pytest.raises(
                RunLocked,
                match=(
                    rf"sdpa_l4: process {holder.pid} is working on this run; .*`evoengine show"
                    r" sdpa_l4 --runs-dir \S+runs`"
                ),
            ):
                open_run(paths, create)
        with open_run(paths, read_only=True) as run:
            assert run.store.get(RunInfo) == info()
        holder.kill()
        holder.wait()
        open_run(paths).close()


def test_a_child_program_does_not_keep_the_lock(paths: RunPaths) -> None:
    with open_run(paths):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        open_run(paths).close()
    finally:
        child.kill()
        child.wait()


def test_the_lock_is_free_again_when_opening_fails(paths: RunPaths) -> None:
    for _ in range(2):
        with pytest.raises(StoreError, match="already exists"):
            open_run(paths, create=True)
    with open_run(paths) as run:
        run.store.append(proposal(0))


@pytest.mark.parametrize("create", [True, False])
def test_a_place_that_is_not_a_folder_is_refused(tmp_path: Path, create: bool) -> None:
    (tmp_path / "file").write_text("")
    expected = (
        r"file: expected a folder that holds runs, found a file; choose another folder with"
        r" --runs-dir, or move it away"
    )
    for read_only in {False, not create}:
        with pytest.raises(StoreError, match=expected):
            open_run(RunPaths(tmp_path / "file" / "run"), create=create, read_only=read_only)
    with pytest.raises(StoreError, match="file: expected the folder of a run, found a file"):
        open_run(RunPaths(tmp_path / "file"), create=create)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        StoreError, match="link: expected a folder that holds runs, found a dangling link"
    ):
        open_run(RunPaths(tmp_path / "link" / "run"), create=create)


# ---------------------------------------------------------------- files without their database


def everything(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name in ("kernel.cu", "run.db")
    }


def fill(paths: RunPaths) -> None:
    for file in (
        paths.elite("fp32", 1) / "kernel.cu",
        paths.trial(0) / "kernel.cu",
        paths.trial(1) / "kernel.cu",
    ):
        file.parent.mkdir(parents=True)
        file.write_text("kept")


@pytest.mark.parametrize(("create", "read_only"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("state", ["is missing", r"is empty \(0 bytes\)", "holds no run"])
def test_files_of_a_run_whose_database_is_lost_are_never_deleted(
    tmp_path: Path, create: bool, read_only: bool, state: str
) -> None:
    paths = RunPaths(tmp_path / "runs" / "one")
    if state == "holds no run":
        open_run(paths, create=True).close()
    fill(paths)
    if "empty" in state:
        paths.database.touch()
    before = everything(paths.root)
    words = (
        rf"one: run\.db {state}, but elites/ holds 1 file and trials/ holds 2 files: .*restore"
        r" run\.db .*another name with --run"
    )
    with pytest.raises(StoreError, match=words):
        open_run(paths, create, read_only)
    assert everything(paths.root) == before


def test_empty_folders_keep_no_name_from_being_used(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "runs" / "one")
    paths.elites.mkdir(parents=True)
    paths.trials.mkdir()
    paths.database.touch()
    open_run(paths, create=True).close()
