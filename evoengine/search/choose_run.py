"""Resolves and checks task, settings, device and kernels of a new run before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.config import CHECKS, CheckName, ModelSettings, PromptSettings, RunConfig
from evoengine.errors import UsageError
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.generate.endpoint_address import shown_address
from evoengine.generate.ledger import price_of
from evoengine.generate.method_registry import method_of
from evoengine.generate.registry import kind_of
from evoengine.paths import RunPaths, find_kernel, find_task
from evoengine.records import Proposal
from evoengine.search.carried_lessons import lessons_for
from evoengine.search.changes import with_templates
from evoengine.search.make_executor import find_device
from evoengine.search.make_generator import check_generator
from evoengine.search.roofline import refuse_without_work
from evoengine.search.run_options import RunOptions
from evoengine.search.run_reader import RunReader
from evoengine.search.starting_kernels import SEED
from evoengine.search.tier_options import tiers_from
from evoengine.search.tried_templates import try_templates
from evoengine.task.load import load_task
from evoengine.task.schema import Task

DEFAULT_METHOD = str(RunConfig.model_fields["method"].default)
DEFAULT_TUNE_SHARE = 0.5  # one configuration for each reply
TUNED_IN_FLIGHT = 16  # trials that a tuner alone has in flight on a GPU
CONTROL = "best_of_n"  # the method that others are compared with: it samples and nothing else


@dataclass(frozen=True)
class RunChoice:
    """The task, settings, device and starting kernels of a new run."""

    task: Task
    task_path: Path
    config: RunConfig
    device: DeviceChoice
    seeds: list[Proposal]
    notices: list[str]
    despite_audit: bool = False  # whether to start on a task that lets wrong outputs through
    measure_baselines: bool = False  # whether to time baselines whose times are stored, too


def choose_run(
    task: str,
    options: RunOptions = RunOptions(),  # noqa: B008 - frozen
    *,
    seed: int = 0,
    device: str = "auto",
    checks: str | None = None,
    kernels: list[str] | None = None,
    in_flight: int | None = None,
    method: str | None = None,
    tiers: Sequence[str] = (),
    lessons_from: Sequence[Path] = (),
    despite_audit: bool = False,
    measure_baselines: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> RunChoice:
    """The parts of a new run; `options` replace the defaults of the task and of the settings.
    `lessons_from` are folders of runs whose lessons it begins with.

    Raises TaskError, UsageError, DeviceError, CandidateError, GeneratorError, StoreError.
    """
    path = find_task(task).resolve()
    loaded = load_task(path)
    files = _kernel_files(kernels, loaded, path)
    generator, notices = _generator_name(options, environ)
    settings = _model_settings(options, generator, loaded, environ)
    refuse_without_work(loaded, options.stop_at_roofline)
    chosen_device = find_device(device, loaded)
    if measure_baselines:
        _refuse_without_gpu(chosen_device)
    given = {"--method": method, "--tier": tiers}
    method = _method_name(method, options, generator)
    config = RunConfig(
        task=str(path),
        seed=seed,
        trials=options.trials or loaded.budget.trials,
        generator=generator,
        model=settings,
        method=method,
        tiers=tiers_from(tiers, loaded),
        prompts=with_templates(PromptSettings(**options.prompt_settings)),
        replay_from=str(Path(options.replay_from).resolve()) if options.replay_from else None,
        tune_share=_tune_share(options, generator, method),
        device=device,
        checks=parse_checks(checks, chosen_device),
        kernels=tuple(str(file) for file in files),
        plateau=options.plateau,
        stop_at_roofline=options.stop_at_roofline,
        lessons=lessons_for(generator, method, lessons_from, options.replay_from),
        in_flight=in_flight or _in_flight(generator, chosen_device),
    )
    seeds = [starting_kernel(file) for file in files]
    check_generator(config, environ)
    try_templates(config, loaded, seeds)
    found = [chosen_device.notice] if chosen_device.notice else []
    notices = [*found, *notices, *_useless_options(generator, options, given)]
    return RunChoice(
        loaded, path, config, chosen_device, seeds, notices, despite_audit, measure_baselines
    )


def _in_flight(generator: str, device: DeviceChoice) -> int:
    """A GPU that judges several candidates a second waits for verifications and races where only a
    few trials are in flight.
    """
    if generator == "tune" and device.ordinal is not None:
        return TUNED_IN_FLIGHT
    return int(RunConfig.model_fields["in_flight"].default)


def _model_settings(
    options: RunOptions, generator: str, task: Task, environ: Mapping[str, str]
) -> ModelSettings:
    address = base_url_from(environ) if generator == "openai" else None
    settings = ModelSettings(base_url=address, cost_cap_usd=task.budget.cost_usd)
    return with_price(settings.model_copy(update=options.model_settings))


def _kernel_files(kernels: list[str] | None, task: Task, task_path: Path) -> list[Path]:
    """The files of the starting kernels: `kernels`, or those that the task names."""
    folder = task_path.parent
    files = [find_kernel(name, folder).resolve() for name in kernels or task.seeds_from]
    if not files:
        raise UsageError(
            f"task {task.name} names no starting kernels; give some with --kernel FILE"
        )
    return files


def _refuse_without_gpu(device: DeviceChoice) -> None:
    if device.ordinal is None:
        raise UsageError(
            "--measure-baselines needs a GPU: without one times are modelled, and there are no"
            " baselines"
        )


def _useless_options(generator: str, options: RunOptions, given: Mapping[str, object]) -> list[str]:
    """Messages on the options that the generator does not heed; `given` are some more of them, by
    name.
    """
    if generator != "tune":
        return []
    names = [name for name, value in given.items() if value]
    names += ["--model"] if options.model else []
    names += ["--prompts"] if options.prompts_folder else []
    found = []
    if names:
        has = "have" if len(names) > 1 else "has"
        found.append(f"{', '.join(names)} {has} no effect: the built-in tuner asks no model")
    if options.tune_share is not None:
        found.append("--tune-share has no effect: the built-in tuner tunes in every trial")
    return found


def _generator_name(options: RunOptions, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """The name of the generator, given or chosen here, and notices for the user."""
    if options.generator == "replay" and options.replay_from is None:
        raise UsageError("--generator replay needs the run to replay: --replay-from RUN")
    if options.generator:
        kind_of(options.generator)
        return options.generator, []
    if options.replay_from is not None:
        return "replay", []
    if environ.get("OPENAI_API_KEY"):
        return "openai", []
    note = (
        "no OPENAI_API_KEY: the built-in tuner searches the tunables that the kernels declare; no"
        " model is asked"
    )
    if environ.get("OPENAI_BASE_URL"):
        note += ", nor OPENAI_BASE_URL: --generator openai asks that without a key"
    return "tune", [note]


def _method_name(given: str | None, options: RunOptions, generator: str) -> str:
    """The method that is given, else full; a replay has that of the run that it replays. Raises
    UsageError for a replay with another one.
    """
    if generator != "replay" or options.replay_from is None:
        return method_name(given)
    recorded = _settings_of(options.replay_from).method
    if given not in (None, recorded):
        raise UsageError(
            f"--method {given}: the replayed run's prompts followed the method {recorded}; leave"
            " --method out"
        )
    return recorded


def method_name(given: str | None) -> str:
    """`given` or the default; raises UsageError for an unknown method."""
    method_of(given or DEFAULT_METHOD)
    return given or DEFAULT_METHOD


def default_tune_share(method: str) -> float:
    """The share of the trials that tune where none is given."""
    return 0.0 if method == CONTROL else DEFAULT_TUNE_SHARE


def _tune_share(options: RunOptions, generator: str, method: str) -> float:
    """The share that is given; else, of a replay, that of the run it replays."""
    if options.tune_share is not None:
        return options.tune_share
    if generator != "replay" or options.replay_from is None:
        return default_tune_share(method)
    return _settings_of(options.replay_from).tune_share


def _settings_of(run: str) -> RunConfig:
    """The current settings of a stored run; raises StoreError, UsageError if it has not begun."""
    with RunReader(RunPaths(Path(run))) as reader:
        return reader.config


def starting_kernel(file: Path) -> Proposal:
    """The proposal of a starting kernel; raises CandidateError."""
    return Proposal(operator=SEED, source=kernel_file.read(file).source, label=file.stem)


def new_run_paths(runs_dir: Path, name: str | None, task: Task) -> RunPaths:
    """The folder of a new run, named after task and time unless `name` is given."""
    if name is not None and (
        not name or name in (".", "..") or "/" in name or name.startswith("-")
    ):
        raise UsageError(f"expected a plain folder name for --run, got {name!r}")
    return RunPaths(runs_dir / (name or f"{task.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"))


def parse_checks(text: str | None, device: DeviceChoice) -> tuple[CheckName, ...]:
    """The checks of checked mode, from `none` or comma-separated names; all if `text` is None.

    Raises UsageError.
    """
    if text is None:
        return CHECKS
    if device.is_scripted:
        raise UsageError("--check: nothing is checked by --device scripted; choose another device")
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise UsageError(
            f"--check: no check {unknown[0]!r}; expected none, or some of {','.join(CHECKS)}"
        )
    return tuple(name for name in CHECKS if name in names)


def base_url_from(environ: Mapping[str, str]) -> str | None:
    """The model endpoint's address in `environ`, as a run stores it; None for OpenAI's."""
    given = environ.get("OPENAI_BASE_URL")
    return shown_address(given) if given else None


def with_price(settings: ModelSettings) -> ModelSettings:
    """`settings` with the price of the model, if it is known, so that it is stored with the run."""
    price = price_of(settings)
    if price is None:
        return settings
    prices = {
        "usd_per_million_prompt": price.prompt,
        "usd_per_million_completion": price.completion,
    }
    return settings.model_copy(update=prices)
