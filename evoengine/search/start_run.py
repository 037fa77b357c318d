"""Starts a new run."""

from __future__ import annotations

from datetime import UTC, datetime

from evoengine import __version__
from evoengine.events import RunEnded
from evoengine.paths import RunPaths
from evoengine.protocols import ExecutorStart, ProposalRow
from evoengine.records import TIMING_VERSION, RunInfo
from evoengine.search.choose_run import RunChoice
from evoengine.search.control import Control
from evoengine.search.make_executor import make_executor
from evoengine.search.references import reference_digests
from evoengine.search.run_audit import audit_findings, refuse_findings
from evoengine.search.run_engine import run_engine, show_notices, start_executor
from evoengine.store.run_folder import open_run


async def start_run(choice: RunChoice, paths: RunPaths, control: Control) -> RunEnded:
    """Runs `choice` in a new folder; raises EvoError."""
    with open_run(paths, create=True) as folder, control.within_time_limit():
        show_notices(choice.notices, control.observe)
        executor = make_executor(
            choice.task,
            choice.task_path,
            choice.device,
            choice.config.checks,
            measure_baselines=choice.measure_baselines,
        )
        try:
            start = await start_executor(executor, control)
            if start is None:
                return control.ended(" before the first trial")
            show_notices(_baseline_notices(start), control.observe)
            findings = await audit_findings(executor, choice, start.environment, control)
            if findings is None:
                return control.ended(" before the first trial")
            show_notices([f"the audit found: {line}" for line in findings], control.observe)
            refuse_findings(choice, findings)
            info = _info(choice, paths, start, findings)
            seeds = choice.seeds[: choice.config.trials]
            folder.store.append(info, *(ProposalRow(*numbered) for numbered in enumerate(seeds)))
            return await run_engine(info, folder.store, executor, start.environment, control)
        finally:
            await executor.close()


def _baseline_notices(start: ExecutorStart) -> list[str]:
    """One message for each baseline that does not work."""
    return [
        f"baseline {name} does not work here and is left out: {problem}"
        for name, problem in start.baseline_problems.items()
    ]


def _info(
    choice: RunChoice, paths: RunPaths, start: ExecutorStart, findings: tuple[str, ...]
) -> RunInfo:
    return RunInfo(
        name=paths.root.name,
        task_path=str(choice.task_path),
        config=choice.config.model_dump(mode="json"),
        task=choice.task.model_dump(mode="json"),
        environment=start.environment.model_dump(mode="json"),
        baselines=start.baselines,
        baseline_us=start.baseline_us,
        baseline_problems=start.baseline_problems,
        references=reference_digests(choice.task, choice.task_path),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        timing_version=TIMING_VERSION,
        audit_findings=findings,
    )
