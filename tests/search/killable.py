"""Searches in processes of their own, to be killed: `python -m tests.search.killable`.

For each line on stdin, a kind of generator and a folder, a child is forked that goes on with the
run there and then waits. The lines on
stdout are "pid N", "complete" once the run is, and "dead" when the child is gone. A fork saves the
second that the imports take.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.protocols import Generator
from evoengine.records import RunInfo
from evoengine.store.run_folder import open_run
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    SometimesCopying,
    make_engine,
    run_engine,
    tuning,
)

DELAY_S = 0.004
# by what a line on stdin calls it, from the time in seconds that a reply takes
GENERATORS: dict[str, Callable[[float], Generator]] = {
    "asking": SometimesCopying,
    "tuning": lambda delay_s: tuning(SometimesCopying(delay_s)),
}


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def search(kind: str, folder: Path) -> None:
    task = load_scale_task(folder)
    paths = RunPaths(folder / "run")
    started = paths.database.exists() and _has_info(paths)
    with open_run(paths, create=not started) as run:
        if not started:
            run.store.append(
                RunInfo(
                    name="run",
                    task_path="",
                    config={},
                    task={},
                    environment=None,
                    baselines={},
                    created="",
                    version="",
                )
            )
        engine = make_engine(task, run.store, GENERATORS[kind](DELAY_S), DELAY_S, rule=CLOSE)
        engine.restore()
        ended = await run_engine(engine)
    if ended.complete:
        say("complete")


def _has_info(paths: RunPaths) -> bool:
    """Whether an earlier process came as far as describing the run."""
    try:
        with open_run(paths, read_only=True) as run:
            return run.store.get(RunInfo) is not None
    except StoreError:
        return False


def main() -> None:
    import optuna  # noqa: F401 - before the fork: it takes longer than a child lives

    for line in sys.stdin:
        kind, _, folder = line.strip().partition(" ")
        child = os.fork()
        if child == 0:
            say(f"pid {os.getpid()}")
            asyncio.run(search(kind, Path(folder)))
            signal.pause()  # so that its number stays its own until it is killed
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
