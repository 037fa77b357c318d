"""Killed at any instant, a run resumes as if nothing had happened."""

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

from evoengine.paths import RunPaths
from evoengine.store.memory_store import MemoryStore
from evoengine.store.run_folder import open_run
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    ScriptedGenerator,
    content_of,
    make_engine,
    run_engine,
)

ROOT = Path(__file__).parents[2]
KILLS = 50
MOST_STARTS = 400


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command(folder), cwd=ROOT, stdout=subprocess.PIPE, text=True)


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.search.killable", str(folder)]


def test_fifty_kills_at_random_instants_change_nothing(tmp_path):
    kills, runs, rng = 0, 0, random.Random(2510_03760)  # noqa: S311 - must repeat
    expected = MemoryStore()
    engine = make_engine(load_scale_task(tmp_path), expected, ScriptedGenerator())
    asyncio.run(run_engine(engine))
    for _ in range(MOST_STARTS):
        if kills >= KILLS:
            break
        folder = tmp_path / str(runs)
        folder.mkdir(exist_ok=True)
        process = start(folder)
        assert process.stdout is not None
        assert process.stdout.readline() in ("running\n", "")
        time.sleep(rng.uniform(0.0, 0.12))
        process.kill()
        output = process.stdout.read()
        process.wait()
        process.stdout.close()
        if "complete" in output:
            _compare(folder, expected)
            runs += 1
        else:
            kills += 1
    assert kills >= KILLS
    folder = tmp_path / str(runs)
    folder.mkdir(exist_ok=True)
    subprocess.run(command(folder), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    _compare(folder, expected)


def _compare(folder: Path, expected: MemoryStore) -> None:
    with open_run(RunPaths(folder / "run"), read_only=True) as run:
        assert content_of(run.store) == content_of(expected)
        assert run.store.spent().usage == expected.spent().usage, "no reply is paid for twice"
        lost = run.store.spent().unanswered
        requests = run.store._rows("SELECT count(*) FROM requests")[0][0]
        replies = run.store._rows("SELECT count(*) FROM replies")[0][0]
        assert lost.requests == requests - replies, (
            "each request that a kill cut off counts as possibly paid"
        )
