"""An executor without compiler and device, to try a generator with."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import DeviceError
from evoengine.evaluate.scripted.scripted_findings import BASELINE_US
from evoengine.evaluate.scripted.scripted_race import scripted_race
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule, scripted_verdict
from evoengine.protocols import ActivityReport, ExecutorStart, Progress, SearchBar
from evoengine.records import AuditReport, Environment, Interval, Race, Verdict
from evoengine.task.schema import Task

SCRIPTED_GPU = Environment(
    device="cuda:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=227 * 1024,
    l2_bytes=50 * 1024**2,
    memory_bytes=140 * 1024**3,
    versions={"driver": "13.0", "torch": "2.11"},
)
SCRIPTED_EMULATOR = SCRIPTED_GPU.model_copy(
    update={
        "device": "emulator:l4 NVIDIA L4 (modelled on 2 cores)",
        "kind": "emulator",
        "versions": {"clang": "22.1.8", "nvrtc": "13.0"},
    }
)
# What `--device scripted` is: called modelled, so that no speed-up is derived from drawn times.
SCRIPTED_DEVICE = SCRIPTED_GPU.model_copy(
    update={
        "device": "scripted (no kernel is run, verdicts are drawn at random)",
        "kind": "scripted",
        "versions": {},
    }
)


class ScriptedExecutor:
    """protocols.Executor whose verdicts follow from the candidate's digest by a VerdictRule.

    It is for those who write a generator: a run of a hundred trials takes seconds, needs neither
    compiler nor GPU, and is the same each time. Nothing is compiled, so a verdict says nothing
    about a kernel; a header that does not fit the task is refused as in a real run. A user's
    generator runs like this:

        executor = ScriptedExecutor(task)
        environment = asyncio.run(executor.start()).environment
        config = RunConfig(task=task.name, trials=40, generator="tune")
        engine = Engine(task=task, config=config, environment=environment, seeds=seeds,
                        generator=generator, executor=executor, store=MemoryStore())
        asyncio.run(engine.run(asyncio.Event()))

    `seeds` are Proposals of the starting kernels. The stored trials are in `engine.store.trials()`,
    the best ones in `engine.population.elites`.
    """

    def __init__(
        self,
        task: Task,
        environment: Environment = SCRIPTED_GPU,
        rule: VerdictRule = VerdictRule(),  # noqa: B008 - frozen
        delay_s: float = 0.0,
        verdict_of: Callable[[Candidate, bool], Verdict] | None = None,
        race_of: Callable[[Candidate, Candidate], Race] | None = None,
    ) -> None:
        """With SCRIPTED_EMULATOR as `environment`, times are modelled.

        A verdict takes between half of `delay_s` and one and a half of it, by chance, as in a real
        run. `verdict_of` takes a candidate and `verify`, and replaces `rule` and the check of the
        header. `race_of` takes newcomer and holder, and replaces `rule` in races.
        """
        self._environment = environment
        self._baselines = {} if environment.is_modelled else dict.fromkeys(task.cases, _first(task))
        self._delay_s = delay_s
        self._verdict_of = verdict_of or (
            lambda candidate, verify: scripted_verdict(candidate, task, environment, rule, verify)
        )
        self._race_of = race_of or (lambda newcomer, holder: scripted_race(newcomer, holder, rule))
        self._started = False
        self.raced: list[tuple[str, str]] = []  # the digests of newcomers and holders
        self.evaluated: list[str] = []  # the digests of the candidates, as they were judged

    async def start(self) -> ExecutorStart:
        self._started = True
        return ExecutorStart(
            environment=self._environment,
            baselines=self._baselines,
            baseline_us={case: {name: BASELINE_US} for case, name in self._baselines.items()},
        )

    async def audit(self, progress: Progress) -> AuditReport:
        """An empty report: no reference is computed."""
        return AuditReport(rows=())

    async def evaluate(
        self,
        candidate: Candidate,
        progress: Progress,
        verify: bool = False,
        search: SearchBar | None = None,
        sittings: int = 1,
    ) -> Verdict:
        if not self._started:
            raise DeviceError("the executor was asked for a verdict before it was started")
        progress("judging by the script")
        await self._wait()
        self.evaluated.append(candidate.digest)
        verdict = self._verdict_of(candidate, verify)
        bar, score = search.score if search else None, verdict.score
        is_coarse = bar is not None and score is not None and score.low > bar
        return verdict.model_copy(update={"is_coarse": is_coarse})

    async def race(
        self, newcomer: Candidate, holder: Candidate, score: Interval, progress: Progress
    ) -> Race:
        if not self._started:
            raise DeviceError("the executor was asked for a race before it was started")
        if self._environment.is_modelled:
            raise DeviceError("modelled times are not raced")
        progress("racing by the script")
        await self._wait()
        self.raced.append((newcomer.digest, holder.digest))
        return self._race_of(newcomer, holder)

    async def _wait(self) -> None:
        # unseeded: the time of a verdict is chance in a real run too, and must decide nothing
        await asyncio.sleep(self._delay_s * random.uniform(0.5, 1.5))  # noqa: S311 - not secret

    async def activity(self, candidate: Candidate, progress: Progress) -> ActivityReport:
        """None: no kernel is run."""
        if not self._started:
            raise DeviceError("the executor was asked for a verdict before it was started")
        return ActivityReport(problem="no kernel is run here: verdicts follow a script")

    async def close(self) -> None:
        """Nothing is open."""


def _first(task: Task) -> str:
    return next(iter(task.baselines))
