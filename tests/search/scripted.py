"""Deterministic parts for an engine without compiler, device or model."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from evoengine.candidate.kernel_file import Candidate
from evoengine.config import RunConfig
from evoengine.digest import derived_seed
from evoengine.events import Observer
from evoengine.protocols import ExecutorStart, Progress, Replies, Request, Store
from evoengine.records import (
    Environment,
    Interval,
    Outcome,
    Proposal,
    Reply,
    Status,
    Usage,
    Verdict,
)
from evoengine.search.engine import Engine
from evoengine.task import schema as tasks
from evoengine.task.load import load_task as load_task_file

TASK = """
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {out: {shape: [N], dtype: float32}}
cases: {small: {N: 1024}}
tiers: {fp32: {atol: 1e-6, rel_rmse: 1e-6}, fp16: {atol: 1e-3, rel_rmse: 1e-3}}
objective: {cases: [small]}
baselines: {torch: scale.py:forward}
budget: {trials: 40}
"""

KERNEL = """/* evoengine
name: scale
precision: PRECISION
tunables: {BLOCK: [128, 256]}
launches:
  - {kernel: scale, grid: ["ceil_div(N, BLOCK)"], block: [BLOCK], args: [x, out, N]}
*/
extern "C" __global__ void scale(const float* x, float* out, int n) { /* VARIANT */ }
"""

ENVIRONMENT = Environment(
    device="scripted:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=232448,
    l2_bytes=1,
    memory_bytes=1,
    versions={},
)


def kernel(variant: str, precision: str = "fp32") -> str:
    return KERNEL.replace("VARIANT", variant).replace("PRECISION", precision)


SEEDS = [
    Proposal(operator="seed", source=kernel(f"seed {number}", tier), label=f"seed{number}")
    for number, tier in enumerate(["fp32", "fp32", "fp16"])
]


def load_task(folder: Path) -> tasks.Task:
    (folder / "scale.py").write_text("def forward(x):\n    return x * 2\n")
    (folder / "scale.yaml").write_text(TASK)
    return load_task_file(folder / "scale.yaml")


class ScriptedExecutor:
    """Verdicts that follow from the candidate's digest; every fresh verdict differs a little from
    the first.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.evaluated: list[str] = []

    async def start(self) -> ExecutorStart:
        return ExecutorStart(environment=ENVIRONMENT, baselines={"small": "torch"})

    async def evaluate(
        self, candidate: Candidate, progress: Progress, verify: bool = False
    ) -> Verdict:
        progress("judging")
        luck = random.Random(derived_seed(candidate.digest))  # noqa: S311 - must repeat, need not be secret
        if self.delay_s:
            await asyncio.sleep(self.delay_s * random.random())  # noqa: S311 - real timing varies; the result must not
        self.evaluated.append(candidate.digest)
        status = luck.choice(
            [Status.correct, Status.correct, Status.correct, Status.wrong_result, Status.crash]
        )
        if verify and luck.random() < 0.2:
            status = Status.wrong_result
        if status is not Status.correct:
            return Verdict(
                status=status,
                reason="scripted",
                tier=candidate.plan.precision,
                code_digest=candidate.digest,
            )
        score = luck.uniform(0.5, 2.0) * (1.01 if verify else 1.0)
        interval = Interval(value=score, low=score * 0.99, high=score * 1.01)
        return Verdict(
            status=status,
            reason="correct",
            tier=candidate.plan.precision,
            score=interval,
            latency_us=interval,
            code_digest=candidate.digest,
        )

    async def close(self) -> None:
        pass


class ScriptedGenerator:
    """Asks a pretended model; what it proposes depends on everything that a request shows."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.asked: list[tuple[int, int]] = []
        self.told: list[int] = []

    def tell(self, outcome: Outcome) -> None:
        self.told.append(outcome.trial)

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        seen = [evaluated.outcome.model_dump_json() for _, evaluated in request.elites] + [
            item.outcome.model_dump_json() for item in request.recent
        ]
        text = f"{derived_seed(request.seed, len(self.told), *seen):08x}"

        async def ask() -> Reply:
            replies.send(0, 0.01)
            return await self._ask(request.trial, text)

        reply = await replies.get_or_ask(0, ask)
        parents = tuple(elite.outcome.trial for elite, _ in request.elites)[:2]
        if derived_seed(reply.text) % 9 == 0:
            return Proposal(
                operator="mutate",
                parents=parents,
                source=None,
                problem=f"no kernel in {reply.text}",
            )
        tier = "fp16" if derived_seed(reply.text) % 3 == 0 else "fp32"
        return Proposal(operator="mutate", parents=parents, source=kernel(reply.text, tier))

    async def _ask(self, trial: int, text: str) -> Reply:
        self.asked.append((trial, 0))
        if self.delay_s:
            await asyncio.sleep(self.delay_s * random.random())  # noqa: S311 - as above
        return Reply(
            model="scripted",
            prompt="?",
            text=text,
            usage=Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.01),
        )

    async def close(self) -> None:
        pass


def make_engine(
    task: tasks.Task,
    store: Store,
    generator: ScriptedGenerator,
    executor: ScriptedExecutor,
    trials: int = 40,
    observe: Observer = lambda _: None,
) -> Engine:
    config = RunConfig(task="scale.yaml", trials=trials, generator="openai", in_flight=4)
    return Engine(
        task=task,
        config=config,
        environment=ENVIRONMENT,
        seeds=SEEDS,
        generator=generator,
        executor=executor,
        store=store,
        observe=observe,
    )


def content_of(store: Store) -> list[object]:
    """Everything that a run decided, in a form that can be compared."""
    return [(number, summary) for number, summary in store.trials()]
