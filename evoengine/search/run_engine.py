"""Runs the engine of a new or resumed run."""

from __future__ import annotations

from collections.abc import Iterable

from evoengine.config import RunConfig
from evoengine.events import Notice, Observer, RunEnded, RunStarted, Spent
from evoengine.protocols import (
    Executor,
    ExecutorStart,
    Store,
    VerdictRow,
)
from evoengine.records import Environment, RunInfo, Usage
from evoengine.search.changes import limits_from
from evoengine.search.control import Control
from evoengine.search.engine import Engine
from evoengine.search.make_generator import open_generator
from evoengine.search.run_ends import store_end
from evoengine.search.settled_trials import count_settled
from evoengine.search.starting_kernels import starting_kernels
from evoengine.task.schema import Task


async def start_executor(executor: Executor, control: Control) -> ExecutorStart | None:
    """Starts the executor, which takes seconds, and shows its notices; None if the run is stopped
    before it has started.
    """
    start = await control.unless_stopped(executor.start())
    if start is not None:
        show_notices(start.notices, control.observe)
    return start


def show_notices(notices: Iterable[str], observe: Observer) -> None:
    """Passes each notice to the observer."""
    for notice in notices:
        observe(Notice(notice))


async def run_engine(
    info: RunInfo, store: Store, executor: Executor, environment: Environment, control: Control
) -> RunEnded:
    """Searches from the last stored trial to the end of the budget; raises EvoError."""
    config = RunConfig.model_validate(info.config)
    spent, observe = store.spent().usage, control.observe
    async with open_generator(config, store, control) as generator:
        engine = Engine(
            task=Task.model_validate(info.task),
            config=config,
            environment=environment,
            seeds=starting_kernels(store, config),
            generator=generator,
            executor=executor,
            store=store,
            observe=observe,
            limits_from=limits_from(store),
        )
        resumed = store.get(VerdictRow, 0) is not None
        settled = count_settled(store, config, environment)
        observe(RunStarted(info, environment, config.trials, settled, resumed))
        if resumed and spent != Usage():
            observe(Spent(spent))
        engine.restore()
        ended = await engine.run(control.stop, control.stop_now, control.ended)
    store_end(store, ended, count_settled(store, config, environment))
    return ended
