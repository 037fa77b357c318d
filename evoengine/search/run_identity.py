"""Refuses to resume a run that was timed in another way."""

from __future__ import annotations

import shlex

from evoengine.config import RunConfig
from evoengine.errors import UsageError
from evoengine.paths import RunPaths
from evoengine.population.elites import Population
from evoengine.protocols import Store
from evoengine.records import TIMING_VERSION, Elite, Environment, RunInfo
from evoengine.search.settled_trials import fold_into_population


def refuse_other_timing(info: RunInfo, paths: RunPaths, store: Store) -> None:
    """Raises UsageError if the run has another version of the timing, because its verdicts cannot
    be compared with those to come; names the command that starts a new run from its best kernels.
    """
    if info.timing_version == TIMING_VERSION:
        return
    best = [paths.elite(elite.tier, 1) / "kernel.cu" for elite in _leading(info, store)]
    export = (
        f"`evoengine export {info.name}`, then " if not all(path.is_file() for path in best) else ""
    )
    given = [word for path in best for word in ("--kernel", str(path))]
    command = shlex.join(["evoengine", "run", info.task_path, *given])
    what = "with its best kernels" if best else "of the same task"
    raise UsageError(
        f"run {info.name} was judged by version {info.timing_version} of the timing (evoengine"
        f" {info.version}), here is version {TIMING_VERSION}: their verdicts cannot be compared,"
        f" so the run can be shown and exported, but not resumed; start a new one {what}:"
        f" {export}`{command}`"
    )


def _leading(info: RunInfo, store: Store) -> list[Elite]:
    """The first place of every tier."""
    environment = None if info.environment is None else Environment.model_validate(info.environment)
    places = RunConfig.model_validate(info.config).places
    population = Population.of_run(places, environment, info.timing_version)
    for _ in fold_into_population(store.trials(), population):
        pass
    return [elite for elite in population.elites if elite.place == 1]
