"""Chooses the real parts behind the seams, and runs an engine over them.

The engine knows protocols only; here it is decided which generator, device, executor
and store a run has, and every substitution is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from evoengine import __version__
from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.kernel_file import Candidate
from evoengine.config import CHECKS, CheckName, GeneratorName, ModelSettings, RunConfig
from evoengine.digest import digest
from evoengine.errors import DeviceError, TaskError, UsageError, hint
from evoengine.evaluate.compile.includes import check_includes
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.worker_device import cuda_device, emulator_device
from evoengine.evaluate.device_choice import DeviceChoice, choose_device, same_compilers
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.events import Notice, Observer, RunEnded, RunStarted, Spent
from evoengine.generate.endpoint_address import shown_address
from evoengine.generate.ledger import price_of
from evoengine.generate.llm import ModelGenerator, check_settings
from evoengine.generate.replay import ReplayGenerator
from evoengine.generate.tune import TuneGenerator
from evoengine.paths import RunPaths, cache_dir, find_kernel, find_task
from evoengine.population.elites import Population, resolution_of
from evoengine.protocols import (
    ChangeRow,
    ExecutorStart,
    Generator,
    Progress,
    ProposalRow,
    Store,
    VerdictRow,
)
from evoengine.records import Environment, Proposal, RunInfo, SettingsChange, Usage, Verdict
from evoengine.search.changes import Wanted, changed, changes_of, current_info, differences
from evoengine.search.clock import utc_now
from evoengine.search.control import Control
from evoengine.search.engine import Engine
from evoengine.search.fold import folded
from evoengine.store.run_folder import RunFolder, open_run
from evoengine.store.sqlite_store import SqliteStore
from evoengine.task import schema as tasks
from evoengine.task.schema import Task

SEED = "seed"  # the operator of a starting kernel's proposal
# one core is left to the loop and the worker
COMPILERS = max(1, min(16, (os.cpu_count() or 2) - 1))


@dataclass(frozen=True)
class RunChoice:
    """What a run will use, decided before anything starts."""

    task: Task
    task_path: Path
    config: RunConfig
    device: DeviceChoice
    seeds: list[Proposal]
    notices: list[str]


def choose(
    task: str,
    *,
    trials: int | None = None,
    seed: int = 0,
    generator: str | None = None,
    device: str = "auto",
    checks: str | None = None,
    kernels: list[str] | None = None,
    in_flight: int | None = None,
    wanted: Wanted = Wanted(),  # noqa: B008 - frozen
    replay_from: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> RunChoice:
    """The resolved choice; raises TaskError, UsageError, DeviceError, CandidateError,
    GeneratorError, StoreError.

    `wanted` is what differs from the default of model and endpoint.
    """
    path = find_task(task).resolve()
    loaded = tasks.load(path)
    files = [find_kernel(name, path.parent).resolve() for name in kernels or loaded.seeds_from]
    if not files:
        raise UsageError(
            f"task {loaded.name} names no starting kernels; give some with --kernel FILE"
        )
    name, notices = _generator_name(generator, replay_from, environ)
    address = address_in(environ) if name == "openai" else None
    settings = ModelSettings(base_url=address, cost_cap_usd=loaded.budget.cost_usd)
    settings = priced(settings.model_copy(update=wanted.of_the_model))
    chosen = find_device(device, loaded)
    config = RunConfig(
        task=str(path),
        seed=seed,
        trials=trials or loaded.budget.trials,
        generator=name,
        model=settings,
        replay_from=str(replay_from.resolve()) if replay_from else None,
        device=device,
        checks=check_names(checks, chosen),
        kernels=tuple(str(file) for file in files),
        in_flight=in_flight or RunConfig.model_fields["in_flight"].default,
    )
    seeds = [seed_proposal(file) for file in files]
    check_generator(config, environ)
    return RunChoice(
        loaded, path, config, chosen, seeds, [*([chosen.notice] if chosen.notice else []), *notices]
    )


def _generator_name(
    wanted: str | None, replay_from: Path | None, environ: Mapping[str, str]
) -> tuple[GeneratorName, list[str]]:
    if wanted == "replay" and replay_from is None:
        raise UsageError("--generator replay needs the run to answer from: --replay-from RUN")
    known: dict[str, GeneratorName] = {name: name for name in get_args(GeneratorName)}
    if wanted:
        if wanted not in known:
            raise UsageError(f"no generator {wanted!r}{hint(wanted, known)}")
        return known[wanted], []
    if replay_from is not None:
        return "replay", []
    if environ.get("OPENAI_API_KEY"):
        return "openai", []
    return "tune", [
        "no OPENAI_API_KEY: the built-in tuner searches the tunables that the kernels declare; no"
        " model is asked"
    ]


def check_generator(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Raises what would stop the generator at once, before a device is brought up for it."""
    if config.generator == "openai":
        check_settings(config.model, environ)
    elif config.generator == "replay" and config.replay_from:
        open_run(RunPaths(Path(config.replay_from)), read_only=True).close()


def seed_proposal(file: Path) -> Proposal:
    """A starting kernel as the proposal of a trial; raises CandidateError."""
    return Proposal(operator=SEED, source=candidates.read(file).source, label=file.stem)


def new_run_paths(runs_dir: Path, name: str | None, task: Task) -> RunPaths:
    """The folder of a new run, named after task and time unless `name` is given."""
    if name is not None and (
        not name or name in (".", "..") or "/" in name or name.startswith("-")
    ):
        raise UsageError(f"expected a plain folder name for --run, got {name!r}")
    return RunPaths(runs_dir / (name or f"{task.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"))


async def start_run(choice: RunChoice, paths: RunPaths, control: Control) -> RunEnded:
    """A new run from its first trial; raises EvoError."""
    observe = control.observe
    with open_run(paths, create=True) as folder, control.limited():
        for notice in choice.notices:
            observe(Notice(notice))
        executor = _executor(choice.task, choice.task_path, choice.device, choice.config.checks)
        try:
            started = await _started(executor, control.stop)
            if started is None:
                return RunEnded(f"{control.why} before the first trial", complete=False)
            _tell(started.notices, observe)
            for baseline, problem in started.baseline_problems.items():
                observe(
                    Notice(f"baseline {baseline} does not work here and is left out: {problem}")
                )
            info = RunInfo(
                name=paths.root.name,
                task_path=str(choice.task_path),
                config=choice.config.model_dump(mode="json"),
                task=choice.task.model_dump(mode="json"),
                environment=started.environment.model_dump(mode="json"),
                baselines=started.baselines,
                baseline_us=started.baseline_us,
                baseline_problems=started.baseline_problems,
                references=reference_digests(choice.task, choice.task_path),
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                version=__version__,
            )
            seeds = [
                ProposalRow(trial, seed)
                for trial, seed in enumerate(choice.seeds[: choice.config.trials])
            ]
            folder.store.append(info, *seeds)
            return await _search(info, folder, executor, started.environment, control)
        finally:
            await executor.close()


async def resume_run(paths: RunPaths, control: Control, wanted: Wanted = Wanted()) -> RunEnded:  # noqa: B008 - frozen
    """The rest of a run that was stopped, with what is `wanted` changed; raises EvoError."""
    observe = control.observe
    with open_run(paths) as folder, control.limited():
        info, words = resumed_info(folder.store, wanted, control.environ)
        _same_references(info)
        task, config = Task.model_validate(info.task), RunConfig.model_validate(info.config)
        check_generator(config, control.environ)
        chosen = find_device(_device_of(info, config), task)
        if chosen.notice:
            observe(Notice(chosen.notice))
        executor = _executor(task, Path(info.task_path), chosen, config.checks, info.baselines)
        try:
            started = await _started(executor, control.stop)
            if started is None:
                return RunEnded(f"{control.why} before the device was up", complete=False)
            environment = started.environment
            _tell(started.notices, observe)
            _same_device(info, environment)
            if words:
                _store_change(folder.store, info, environment, words, observe)
            return await _search(info, folder, executor, environment, control)
        finally:
            await executor.close()


def resumed_info(
    store: SqliteStore, wanted: Wanted, environ: Mapping[str, str]
) -> tuple[RunInfo, tuple[str, ...]]:
    """What a run goes on with, and what changes by that; raises UsageError."""
    info = current_info(store)
    assert info is not None  # open_run refuses a run that was never started
    before = RunConfig.model_validate(info.config)
    last = store.last_trial()
    after = changed(before, wanted, 0 if last is None else last + 1)
    settings = priced(after.model) if wanted.model or wanted.price_usd else after.model
    if after.generator == "openai" and environ.get("OPENAI_BASE_URL"):
        settings = settings.model_copy(update={"base_url": address_in(environ)})
    after = after.model_copy(update={"model": settings})
    words = differences(before, after)
    return info.model_copy(update={"config": after.model_dump(mode="json")}), words


def _store_change(
    store: SqliteStore,
    info: RunInfo,
    environment: Environment,
    words: tuple[str, ...],
    observe: Observer,
) -> None:
    settled = _count_settled(store, RunConfig.model_validate(info.config), environment)
    change = SettingsChange(made=utc_now(), trial=settled, config=info.config, words=words)
    store.append(ChangeRow(len(changes_of(store)), change))
    for line in words:
        observe(Notice(f"changed from trial {settled} on: {line}"))


def address_in(environ: Mapping[str, str]) -> str | None:
    """The address of a model endpoint that the environment names, as a run keeps it; None for
    OpenAI's.
    """
    given = environ.get("OPENAI_BASE_URL")
    return shown_address(given) if given else None


def priced(settings: ModelSettings) -> ModelSettings:
    """`settings` with the price that is known of the model, so that a run keeps it."""
    price = price_of(settings)
    return (
        settings.model_copy(
            update={
                "usd_per_million_prompt": price.prompt,
                "usd_per_million_completion": price.completion,
            }
        )
        if price
        else settings
    )


def _tell(notices: Iterable[str], observe: Observer) -> None:
    for notice in notices:
        observe(Notice(notice))


def _device_of(info: RunInfo, config: RunConfig) -> str:
    """What to ask for when a run goes on: `auto` must not change the kind of device that it began
    on.
    """
    if config.device != "auto" or info.environment is None:
        return config.device
    begun = Environment.model_validate(info.environment)
    return begun.device.partition(" ")[0] if begun.is_modelled else "cuda"


async def _started(executor: LocalExecutor, stop: asyncio.Event) -> ExecutorStart | None:
    """What the executor starts with; None when `stop` is set before it is up, which takes
    seconds.
    """
    starting, stopping = asyncio.create_task(executor.start()), asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return None
    return starting.result()


async def _search(
    info: RunInfo,
    folder: RunFolder,
    executor: LocalExecutor,
    environment: Environment,
    control: Control,
) -> RunEnded:
    """The search itself, new or resumed: both come through here."""
    task, config, store = (
        Task.model_validate(info.task),
        RunConfig.model_validate(info.config),
        folder.store,
    )
    seeds = starting_kernels(store, config)
    spent, observe = store.spent().usage, control.observe
    generator, recorded = make_generator(config, store, control)
    try:
        engine = Engine(
            task=task,
            config=config,
            environment=environment,
            seeds=seeds,
            generator=generator,
            executor=executor,
            store=store,
            observe=observe,
        )
        resumed = store.get(VerdictRow, 0) is not None
        observe(
            RunStarted(
                info,
                environment,
                config.trials,
                _count_settled(store, config, environment),
                resumed,
            )
        )
        if resumed and spent != Usage():
            observe(Spent(spent))
        engine.restore()
        return await engine.run(control.stop, control.drop, lambda: control.why)
    finally:
        await generator.close()
        if recorded is not None:
            recorded.close()


def starting_kernels(store: Store, config: RunConfig) -> list[Proposal]:
    """The starting kernels that the run began with, as proposals of its first trials; with few
    trials, not all that it names.
    """
    rows = (store.get(ProposalRow, trial) for trial in range(len(config.kernels)))
    return [
        row.proposal
        for row in itertools.takewhile(
            lambda row: row is not None and row.proposal.operator == SEED, rows
        )
        if row
    ]


def make_generator(
    config: RunConfig, store: SqliteStore, control: Control
) -> tuple[Generator, RunFolder | None]:
    """The generator of a run, and the recorded run that it answers from, to be closed after it."""
    if config.generator == "openai":

        def notify(text: str) -> None:
            # said between a reply and its commit: a view that cannot print says so at the next
            # event
            with contextlib.suppress(OSError):
                control.observe(Notice(text))

        generator = ModelGenerator(
            config.model,
            Path(config.task),
            store.spent(),
            notify,
            check_includes,
            control.environ,
        )
        return generator, None
    if config.generator == "replay":
        assert config.replay_from is not None  # `choose` refuses replay without it
        recorded = open_run(RunPaths(Path(config.replay_from)), read_only=True)
        return ReplayGenerator(recorded.store, check_includes), recorded
    return TuneGenerator(), None


def find_device(device: str, task: Task) -> DeviceChoice:
    """The device that `device` means for `task`; raises UsageError, DeviceError."""
    return choose_device(device, task.target.arch if task.target else None)


def _executor(
    task: Task,
    task_path: Path,
    chosen: DeviceChoice,
    checks: Sequence[str],
    baselines: Mapping[str, str] | None = None,
) -> LocalExecutor:
    pool = CompilePool(COMPILERS)
    if chosen.ordinal is not None:
        return LocalExecutor(task, str(task_path), pool, cuda_device(chosen.ordinal), baselines)
    device = emulator_device(chosen.target, checks, cache_dir() / "answers")
    return LocalExecutor(
        task, str(task_path), pool, device, baselines, CompilePool(COMPILERS, module=CLANG)
    )


def check_names(text: str | None, chosen: DeviceChoice) -> tuple[CheckName, ...]:
    """What checked mode looks for: all by default, `none`, or names with commas between them;
    raises UsageError.
    """
    if text is None:
        return CHECKS
    if not chosen.is_emulator:
        raise UsageError(
            "--check is for the emulator, which alone can follow every access; add --device"
            " emulator"
        )
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise UsageError(
            f"--check: no check {unknown[0]!r}; expected none, or some of {','.join(CHECKS)}"
        )
    return tuple(name for name in CHECKS if name in names)


async def evaluate_once(
    task: Task,
    task_path: Path,
    candidate: Candidate,
    chosen: DeviceChoice,
    checks: Sequence[str],
    progress: Progress,
) -> Verdict:
    """One verdict, no search; raises EvoError."""
    executor = _executor(task, task_path, chosen, checks)
    try:
        progress("starting the device")
        for notice in (await executor.start()).notices:
            progress(f"note: {notice}")
        return await executor.evaluate(candidate, progress)
    finally:
        await executor.close()


def reference_digests(task: Task, task_path: Path) -> dict[str, str]:
    """The Python files that the task names, by name, with the digests of their texts."""
    named = [
        task.reference,
        *task.baselines.values(),
        *(tier.trusted for tier in task.tiers.values() if tier.trusted),
    ]
    files = sorted({name.split(":")[0] for name in named})
    return {file: digest((task_path.parent / file).read_bytes()) for file in files}


def _same_references(info: RunInfo) -> None:
    """Verdicts against two references are not comparable."""
    task_path = Path(info.task_path)
    for file, before in info.references.items():
        path = task_path.parent / file
        if not path.is_file():
            raise TaskError(f"run {info.name} needs {str(path)!r}, which is gone")
        if digest(path.read_bytes()) != before:
            raise TaskError(
                f"{path} changed since run {info.name} began: start a new run, or restore the file"
            )


def _same_device(info: RunInfo, environment: Environment) -> None:
    """Times of two devices are not comparable, nor are those of two compilers' code: a run stays
    with what it began on.
    """
    first = Environment.model_validate(info.environment)
    begun, here = _identity(first), _identity(environment)
    if here != begun:
        ways = [*same_compilers(first, environment), "start a new run"]
        raise DeviceError(
            f"run {info.name} was begun on {begun}; here is {here}: {'; or '.join(ways)}"
        )


def _identity(found: Environment) -> str:
    """What two environments have in common whose times may be compared; the number of cores that
    emulate changes none.
    """
    name, _, model = found.device.partition(" ")
    # which tells registers, and so occupancy
    nvrtc = f"NVRTC {found.versions['nvrtc']}" if "nvrtc" in found.versions else "no NVRTC"
    return (
        f"{name} with clang {found.versions.get('clang', '?')} and {nvrtc}"
        if found.is_modelled
        else f"{model} with {nvrtc}"
    )


def _count_settled(store: SqliteStore, config: RunConfig, environment: Environment) -> int:
    return sum(
        1 for _ in folded(store.trials(), Population(config.places, resolution_of(environment)))
    )
