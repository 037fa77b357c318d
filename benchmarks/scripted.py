"""Stand-ins for compiler, device and model, so that what is measured is the loop between them.

The verdicts have the size of real ones: eight cases checked on nine input sets each, five
of them timed with 200 samples of either side, hot and cold.
"""

from __future__ import annotations

from random import Random

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.protocols import ExecutorStart, Progress, Replies, Request
from evoengine.records import (
    CaseCheck,
    CaseTiming,
    Environment,
    InputSetCheck,
    Interval,
    KernelResources,
    Outcome,
    Proposal,
    Reply,
    Samples,
    Status,
    Usage,
    Verdict,
)
from evoengine.task.schema import Task

SAMPLES = 200  # of each side of a case, hot and cold alike
CALLS = 32  # in one hot sample
TICK_US = 0.032  # the step in which events of recent devices count
# different sets of raw samples; each is compressed on its own, so more would change nothing
TEMPLATES = 16
PROMPT_CHARACTERS, ANSWER_CHARACTERS = 16_000, 8_000

ENVIRONMENT = Environment(
    device="scripted:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=232448,
    l2_bytes=50 * 1024**2,
    memory_bytes=140 * 1024**3,
    versions={
        "cuda_driver": "13.0",
        "torch": "2.11",
        "cupy": "14.2",
        "nvrtc": "13.0",
        "python": "3.12",
        "evoengine": "0",
    },
)


class ScriptedExecutor:
    """protocols.Executor: correct verdicts at once, scores drawn from the candidate's digest."""

    def __init__(self, task: Task) -> None:
        self._baselines = dict.fromkeys(task.cases, next(iter(task.baselines)))
        self._templates = [_verdict(task, Random(number)) for number in range(TEMPLATES)]  # noqa: S311 - not secret

    async def start(self) -> ExecutorStart:
        return ExecutorStart(environment=ENVIRONMENT, baselines=self._baselines)

    async def evaluate(
        self, candidate: Candidate, progress: Progress, verify: bool = False
    ) -> Verdict:
        progress("judging")
        luck = derived_seed(candidate.digest)
        score = 0.5 + luck / 2**32
        interval = Interval(value=score, low=score * 0.995, high=score * 1.005)
        update = {
            "score": interval,
            "latency_us": interval,
            "tier": candidate.plan.precision,
            "code_digest": candidate.digest,
        }
        return self._templates[luck % TEMPLATES].model_copy(update=update)

    async def close(self) -> None:
        """Nothing to let go of."""


class Renaming:
    """protocols.Generator: the first starting kernel under a new name, so that each header is read
    anew; `replies` as of a model, or none.
    """

    def __init__(self, replies: bool) -> None:
        self._replies = replies
        words = Random(0)  # noqa: S311 - not secret
        self._text = " ".join(f"{words.getrandbits(20):x}" for _ in range(PROMPT_CHARACTERS // 5))

    def tell(self, outcome: Outcome) -> None:
        """Learns nothing."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if self._replies:
            await replies.get_or_ask(0, lambda: self._reply(request.trial))
        parents = tuple(elite.outcome.trial for elite, _ in request.elites)[:1]
        source = request.seeds[0].source.replace("name: ", f"name: variant_{request.trial}_of_", 1)
        return Proposal(operator="mutate", parents=parents, source=source)

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _reply(self, trial: int) -> Reply:
        usage = Usage(prompt_tokens=4000, completion_tokens=2000, cost_usd=0.01)
        text = f"{trial} {self._text[:ANSWER_CHARACTERS]}"
        return Reply(
            model="scripted", prompt=self._text, text=text, usage=usage, finish_reason="stop"
        )


def _verdict(task: Task, luck: Random) -> Verdict:
    return Verdict(
        status=Status.correct,
        reason="correct on every case",
        resources=tuple(_resources(f"kernel<{number}>") for number in range(3)),
        checks=tuple(_check(task, case, luck) for case in task.all_cases),
        timings=tuple(_timing(task, case, luck) for case in task.cases),
        phases_s={"compile": 0.25, "check": 0.3, "timing": 0.3, "total": 0.85},
        environment=ENVIRONMENT,
    )


def _resources(kernel: str) -> KernelResources:
    return KernelResources(
        kernel=kernel,
        arch="sm_90",
        registers=96,
        static_shared_bytes=0,
        dynamic_shared_bytes=65536,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )


def _check(task: Task, case: str, luck: Random) -> CaseCheck:
    sets = tuple(
        _input_set(distribution, seed, luck)
        for distribution in task.distributions
        for seed in task.seeds
    )
    return CaseCheck(case=case, hidden=case in task.hidden_cases, ok=True, sets=sets)


def _input_set(distribution: str, seed: int, luck: Random) -> InputSetCheck:
    return InputSetCheck(
        distribution=distribution,
        seed=seed,
        ok=True,
        max_abs=luck.random() * 1e-3,
        rel_rmse=luck.random() * 1e-3,
        failing_share=0.0,
        worst_index=(0, luck.randrange(8), luck.randrange(2048), luck.randrange(64)),
        worst_output="out",
        limit_abs=luck.random() * 1e-3,
        limit_rel_rmse=1e-3,
        trusted_max_abs=luck.random() * 1e-3,
        trusted_rel_rmse=luck.random() * 1e-3,
    )


def _timing(task: Task, case: str, luck: Random) -> CaseTiming:
    return CaseTiming(
        case=case,
        baseline=next(iter(task.baselines)),
        hot=_samples(CALLS, luck),
        cold=_samples(1, luck),
    )


def _samples(calls: int, luck: Random) -> Samples:
    def side() -> tuple[float, ...]:
        return tuple(
            round(luck.gauss(200.0, 2.0) / TICK_US) * TICK_US / calls for _ in range(SAMPLES)
        )

    return Samples(
        candidate_calls=calls, baseline_calls=calls, candidate_us=side(), baseline_us=side()
    )
