"""A run that a real engine searched on the scripted GPU, with races, coarse verdicts and finals."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from evoengine.candidate.kernel_file import Candidate
from evoengine.config import RunConfig
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.events import Event, RunEnded, RunStarted, TrialMoved
from evoengine.paths import RunPaths
from evoengine.protocols import ActivityReport, Progress, ProposalRow, SearchBar
from evoengine.records import (
    TIMING_VERSION,
    CaseTiming,
    GpuState,
    KernelActivity,
    LaunchActivity,
    Status,
    Verdict,
)
from evoengine.search.engine import Engine
from evoengine.store.run_folder import open_run
from evoengine.task.load import load_task
from tests.report.stored_run import run_info
from tests.scale_task import write_task
from tests.search.scripted_generator import SEEDS, ScriptedGenerator

TRIALS = 40
LUCK = 0.9  # of a verification: its times as a share of those of the end of the run
THROTTLED = GpuState(sm_clock_mhz=(1755, 1980), throttled=("power limit",))
ACTIVITY = KernelActivity(
    case="large",
    baseline="torch.mul",
    candidate_us=5.1,
    baseline_us=7.2,
    candidate_launches=(LaunchActivity(name="scale", us=5.1),),
)
RULE = VerdictRule(correct_share=0.8, unstable_share=0.2, void_share=0.6)


class LuckyExecutor(ScriptedExecutor):
    """Its verifications find shorter times than the measurements at the end of a run, where the GPU
    is throttled, some candidates are wrong, and the others have their kernel activity.
    """

    def __init__(self, *arguments: object, wrong_at_the_end: tuple[str, ...] = ()) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.wrong_at_the_end = wrong_at_the_end  # digests of candidates
        self.verified: set[str] = set()

    async def evaluate(
        self,
        candidate: Candidate,
        progress: Progress,
        verify: bool = False,
        search: SearchBar | None = None,
        sittings: int = 1,
    ) -> Verdict:
        verdict = await super().evaluate(candidate, progress, verify, search, sittings)
        if not verify:
            return verdict
        if candidate.digest not in self.verified:
            self.verified.add(candidate.digest)
            return lucky(verdict)
        if candidate.digest in self.wrong_at_the_end:
            return verdict.model_copy(
                update={"status": Status.wrong_result, "reason": "case large: NaN in y"}
            )
        return verdict.model_copy(update={"gpu_state": THROTTLED})

    async def activity(self, candidate: Candidate, progress: Progress) -> ActivityReport:
        progress("profiling by the script")
        return ActivityReport(cases=(ACTIVITY,))


def lucky(verdict: Verdict) -> Verdict:
    """`verdict` with its score and times shortened to a share of LUCK."""
    if verdict.score is None or verdict.latency_us is None:
        return verdict
    scaled = {
        name: found.model_copy(
            update={part: getattr(found, part) * LUCK for part in ("value", "low", "high")}
        )
        for name, found in (("score", verdict.score), ("latency_us", verdict.latency_us))
    }
    timings = tuple(_lucky_times(timing) for timing in verdict.timings)
    return verdict.model_copy(update={**scaled, "timings": timings})


def _lucky_times(timing: CaseTiming) -> CaseTiming:
    shorter = tuple(us * LUCK for us in timing.hot.candidate_us)
    return timing.model_copy(
        update={"hot": timing.hot.model_copy(update={"candidate_us": shorter})}
    )


@dataclass
class SearchedRun:
    """A run on disk, with the events that its observers saw."""

    paths: RunPaths
    events: list[Event] = field(default_factory=list)

    @property
    def ended(self) -> RunEnded:
        return next(event for event in self.events if isinstance(event, RunEnded))


def searched_run(
    folder: Path, stop_before_finals: bool = False, wrong_at_the_end: tuple[str, ...] = ()
) -> SearchedRun:
    """The run in `folder`/runs/one, searched to its end or up to the measurements of elites."""
    task_path = write_task(folder / "tasks")
    task = load_task(task_path)
    config = RunConfig(task=str(task_path), trials=TRIALS, generator="openai", in_flight=4)
    info = run_info(task, task_path, trials=TRIALS).model_copy(
        update={"config": config.model_dump(mode="json"), "timing_version": TIMING_VERSION}
    )
    found = SearchedRun(RunPaths(folder / "runs" / "one"))
    found.events.append(RunStarted(info, SCRIPTED_GPU, TRIALS, 0, False))

    async def search() -> None:
        stop = asyncio.Event()

        def observe(event: Event) -> None:
            found.events.append(event)
            final = isinstance(event, TrialMoved) and event.step.startswith("final: ")
            if stop_before_finals and final:
                stop.set()

        with open_run(found.paths, create=True) as run:
            run.store.append(info, *(ProposalRow(*numbered) for numbered in enumerate(SEEDS)))
            executor = LuckyExecutor(task, SCRIPTED_GPU, RULE, wrong_at_the_end=wrong_at_the_end)
            await executor.start()
            engine = Engine(
                task=task,
                config=config,
                environment=SCRIPTED_GPU,
                seeds=SEEDS,
                generator=ScriptedGenerator(),
                executor=executor,
                store=run.store,
                observe=observe,
            )
            await engine.run(stop)

    asyncio.run(search())
    return found
