"""The executor of an emulated H200 for a task of a corpus, in processes that tests share."""

from __future__ import annotations

from pathlib import Path

from benchmarks.planted_bugs import bug_task, bug_task_path
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from tests.evaluate.kept_fork_server import kept


def corpus_executor(task: str, folder: Path, repair_s: float = 0.0) -> LocalExecutor:
    """The executor, not started, for a packaged task or one of the corpus in `folder`."""
    return LocalExecutor(
        bug_task(task, folder=folder),
        str(bug_task_path(task, folder)),
        CompilePool(1),
        kept().device("h200"),
        clang=CompilePool(1, module=CLANG),
        repair_s=repair_s,
    )
