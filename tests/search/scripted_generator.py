"""A generator that asks a pretended model, and an engine over it and a ScriptedExecutor."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from evoengine.config import RunConfig
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.events import Observer, RunEnded
from evoengine.protocols import Replies, Request, Store
from evoengine.records import Outcome, Proposal, Reply, Usage
from evoengine.search.engine import Engine
from evoengine.task.schema import Task
from tests.scale_task import kernel

SEEDS = [
    Proposal(operator="seed", source=kernel(f"seed{number}", tier), label=f"seed{number}")
    for number, tier in enumerate(["fp32", "fp32", "fp16"])
]
RULE = VerdictRule(correct_share=0.6, unstable_share=0.4, samples=0)
STABLE = VerdictRule(unstable_share=0.0, samples=0)


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
        return Proposal(
            operator="mutate", parents=parents, source=kernel(f"variant_{reply.text}", tier)
        )

    async def _ask(self, trial: int, text: str) -> Reply:
        self.asked.append((trial, 0))
        if self.delay_s:
            await asyncio.sleep(self.delay_s * random.random())  # noqa: S311 - real timing varies; the result must not
        return Reply(
            model="scripted",
            prompt="?",
            text=text,
            usage=Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.01),
        )

    async def close(self) -> None:
        pass


def make_engine(
    task: Task,
    store: Store,
    generator: ScriptedGenerator,
    delay_s: float = 0.0,
    trials: int = 40,
    rule: VerdictRule = RULE,
    observe: Observer = lambda _: None,
) -> Engine:
    """`delay_s` is what a verdict takes."""
    config = RunConfig(task="scale.yaml", trials=trials, generator="openai", in_flight=4)
    return Engine(
        task=task,
        config=config,
        environment=SCRIPTED_GPU,
        seeds=SEEDS,
        generator=generator,
        executor=ScriptedExecutor(task, rule=rule, delay_s=delay_s),
        store=store,
        observe=observe,
    )


async def run_engine(engine: Engine, stop: asyncio.Event | None = None, **options: Any) -> RunEnded:
    """Starts the engine's executor and searches, with the `options` of Engine.run."""
    await engine.executor.start()
    return await engine.run(stop or asyncio.Event(), **options)


def content_of(store: Store) -> list[object]:
    """Everything that a run decided, in a form that can be compared."""
    return [(number, summary) for number, summary in store.trials()]
