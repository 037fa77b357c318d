"""A run in a process of its own, to be killed: `python -m tests.search.killable FOLDER`."""

import asyncio
import sys
from pathlib import Path

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.records import RunInfo
from evoengine.store.run_folder import open_run
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    ScriptedGenerator,
    make_engine,
    run_engine,
)

DELAY_S = 0.004


async def main(folder: Path) -> None:
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
        engine = make_engine(task, run.store, ScriptedGenerator(DELAY_S), DELAY_S)
        engine.restore()
        print("running", flush=True)
        await run_engine(engine)
    print("complete", flush=True)


def _has_info(paths: RunPaths) -> bool:
    """Whether an earlier process came as far as describing the run."""
    try:
        with open_run(paths, read_only=True) as run:
            return run.store.get(RunInfo) is not None
    except StoreError:
        return False


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
