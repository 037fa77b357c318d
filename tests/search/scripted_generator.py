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
from evoengine.generate.tuned_model import TunedModelGenerator
from evoengine.population.elites import Population
from evoengine.protocols import (
    FINAL,
    FIRST,
    VERIFY,
    Executor,
    Generator,
    RaceRow,
    Replies,
    Request,
    Store,
    VerdictRow,
)
from evoengine.records import (
    TIMING_VERSION,
    Elite,
    Environment,
    Outcome,
    Proposal,
    Reply,
    Usage,
)
from evoengine.search.engine import Engine
from evoengine.search.settled_trials import SettledTrial, fold_into_population
from evoengine.task.schema import Task
from tests.scale_task import kernel

SEEDS = [
    Proposal(operator="seed", source=kernel(f"seed{number}", tier), label=f"seed{number}")
    for number, tier in enumerate(["fp32", "fp32", "fp16"])
]
RULE = VerdictRule(correct_share=0.6, unstable_share=0.4, samples=0)
STABLE = VerdictRule(unstable_share=0.0, samples=0)
# so close together that many races are run, of which some are lost and some void
CLOSE = VerdictRule(0.8, unstable_share=0.2, scores=(0.95, 1.05), samples=0, void_share=0.2)

TUNE_SHARE = 0.5


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
            replies.send(0, 0.01, 20)
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
        name = self.name_of(request.trial, reply.text)
        return Proposal(operator="mutate", parents=parents, source=kernel(name, tier))

    async def ask(self, request: Request, replies: Replies, asked: int) -> Proposal:
        """As a model: which trial of those that ask it is decides nothing."""
        return await self.propose(request, replies)

    def name_of(self, trial: int, text: str) -> str:
        """The name of the kernel that a reply stands for: another one for every reply."""
        return f"variant_{text}"

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


class SometimesCopying(ScriptedGenerator):
    """Gives some trials in flight together the same kernel."""

    def name_of(self, trial: int, text: str) -> str:
        return f"copy_{trial // 4}" if derived_seed(text) % 3 == 1 else super().name_of(trial, text)


def tuning(model: ScriptedGenerator) -> TunedModelGenerator:
    """`model`, with half of the trials for the tuner."""
    return TunedModelGenerator(model, TUNE_SHARE)


def make_engine(
    task: Task,
    store: Store,
    generator: Generator,
    delay_s: float = 0.0,
    trials: int = 40,
    rule: VerdictRule = RULE,
    observe: Observer = lambda _: None,
    executor: Executor | None = None,
    environment: Environment = SCRIPTED_GPU,
    method: str = "full",
    limits_from: int = 0,
    **limits: Any,
) -> Engine:
    """`delay_s` is what a verdict takes; `executor` stands in for a ScriptedExecutor with `rule`;
    `limits` are further settings of RunConfig.
    """
    config = RunConfig(
        task="scale.yaml",
        trials=trials,
        generator="openai",
        in_flight=4,
        tune_share=TUNE_SHARE if isinstance(generator, TunedModelGenerator) else 0.0,
        method=method,
        **limits,
    )
    return Engine(
        task=task,
        config=config,
        environment=environment,
        seeds=SEEDS,
        generator=generator,
        executor=executor or ScriptedExecutor(task, environment, rule, delay_s),
        store=store,
        observe=observe,
        limits_from=limits_from,
    )


async def run_engine(engine: Engine, stop: asyncio.Event | None = None, **options: Any) -> RunEnded:
    """Starts the engine's executor and searches, with the `options` of Engine.run."""
    await engine.executor.start()
    return await engine.run(stop or asyncio.Event(), **options)


def content_of(store: Store) -> list[object]:
    """Everything that a run decided, in a form that can be compared: which trials were proposed,
    and those that settled. An early verification that does not count may be there or not.
    """
    proposed = [number for number, summary in store.trials() if summary.proposed]
    return [proposed, *_settled(store)]


def _settled(store: Store) -> list[SettledTrial]:
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    return list(fold_into_population(store.trials(), population))


def elites_of(store: Store) -> tuple[Elite, ...]:
    """The elites after all settled trials of a stored run of `make_engine`."""
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    for _ in fold_into_population(store.trials(), population):
        pass
    return population.elites


def races_of(store: Store) -> list[RaceRow]:
    """All races, by trial, in the order in which they were run."""
    return [
        row
        for trial, summary in store.trials()
        for number in range(len(summary.races))
        if (row := store.get(RaceRow, trial, number))
    ]


def verdicts_of(store: Store) -> list[VerdictRow]:
    """All verdicts that count, by trial."""
    counted = {settled.first.trial for settled in _settled(store) if settled.verified}
    return [
        verdict
        for trial, summary in store.trials()
        if summary.proposed
        for part in (FIRST, VERIFY, FINAL)
        if part != VERIFY or trial in counted
        if (verdict := store.get(VerdictRow, trial, part))
    ]
