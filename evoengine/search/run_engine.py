"""An engine over the parts of a run, new or resumed: both come through here."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable

from evoengine.config import RunConfig
from evoengine.events import Notice, Observer, RunEnded, RunStarted, Spent
from evoengine.protocols import (
    Executor,
    ExecutorStart,
    ProposalRow,
    Store,
    VerdictRow,
)
from evoengine.records import Environment, Proposal, RunInfo, Usage
from evoengine.search.control import Control
from evoengine.search.engine import Engine
from evoengine.search.fold import count_settled
from evoengine.search.make_generator import made_generator
from evoengine.task.schema import Task

SEED = "seed"  # the operator of a starting kernel's proposal


async def started(executor: Executor, control: Control) -> ExecutorStart | None:
    """What the executor starts with, its notices shown; None when the run is stopped before that,
    which takes seconds.
    """
    starting = asyncio.create_task(executor.start())
    stopping = asyncio.create_task(control.stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return None
    start = starting.result()
    show_notices(start.notices, control.observe)
    return start


def show_notices(notices: Iterable[str], observe: Observer) -> None:
    """Shows each to whoever watches the run."""
    for notice in notices:
        observe(Notice(notice))


async def run_engine(
    info: RunInfo, store: Store, executor: Executor, environment: Environment, control: Control
) -> RunEnded:
    """Searches from what is stored to the end of the budget; raises EvoError."""
    config = RunConfig.model_validate(info.config)
    spent, observe = store.spent().usage, control.observe
    async with made_generator(config, store, control) as generator:
        engine = Engine(
            task=Task.model_validate(info.task),
            config=config,
            environment=environment,
            seeds=starting_kernels(store, config),
            generator=generator,
            executor=executor,
            store=store,
            observe=observe,
        )
        resumed = store.get(VerdictRow, 0) is not None
        settled = count_settled(store, config, environment)
        observe(RunStarted(info, environment, config.trials, settled, resumed))
        if resumed and spent != Usage():
            observe(Spent(spent))
        engine.restore()
        return await engine.run(control.stop, control.drop, lambda: control.why)


def starting_kernels(store: Store, config: RunConfig) -> list[Proposal]:
    """The starting kernels that the run began with, as proposals of its first trials.

    With a budget of few trials these are not all that its settings name.
    """
    rows = (store.get(ProposalRow, trial) for trial in range(len(config.kernels)))
    found = itertools.takewhile(lambda row: row is not None and row.proposal.operator == SEED, rows)
    return [row.proposal for row in found if row]
