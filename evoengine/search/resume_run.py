"""Resumes a stored run, possibly with changed settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evoengine.config import RunConfig
from evoengine.errors import DeviceError
from evoengine.evaluate.device_choice import same_compilers
from evoengine.events import Notice, Observer, RunEnded
from evoengine.paths import RunPaths
from evoengine.protocols import ChangeRow
from evoengine.records import Environment, RunInfo, SettingsChange
from evoengine.search.changes import (
    changed_config,
    changes_of,
    current_info,
    differences,
    with_templates,
)
from evoengine.search.choose_run import base_url_from, with_price
from evoengine.search.clock import utc_now
from evoengine.search.control import Control
from evoengine.search.known_settings import refuse_unknown_settings
from evoengine.search.make_executor import find_device, make_executor
from evoengine.search.make_generator import check_generator
from evoengine.search.references import refuse_changed_references
from evoengine.search.roofline import refuse_without_work
from evoengine.search.run_engine import run_engine, start_executor
from evoengine.search.run_identity import refuse_other_timing
from evoengine.search.run_options import RunOptions
from evoengine.search.settled_trials import count_settled
from evoengine.search.starting_kernels import starting_kernels
from evoengine.search.tried_templates import try_templates
from evoengine.store.run_folder import open_run
from evoengine.store.sqlite_store import SqliteStore
from evoengine.task.schema import Task


async def resume_run(
    paths: RunPaths,
    control: Control,
    options: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> RunEnded:
    """Runs the rest of a stored run with its settings changed by `options`; raises EvoError."""
    with open_run(paths) as folder, control.within_time_limit():
        store = folder.store
        info, words = resumed_info(store, paths, options, control.environ)
        refuse_other_timing(info, paths, store)
        refuse_changed_references(info)
        task, config = Task.model_validate(info.task), RunConfig.model_validate(info.config)
        refuse_without_work(task, config.stop_at_roofline)
        check_generator(config, control.environ)
        try_templates(config, task, starting_kernels(store, config))
        device = find_device(_device_to_request(info, config), task)
        if device.notice:
            control.observe(Notice(device.notice))
        executor = make_executor(task, Path(info.task_path), device, config.checks, info.baselines)
        try:
            start = await start_executor(executor, control)
            if start is None:
                return control.ended(" before the device was ready")
            refuse_other_device(info, start.environment)
            if words:
                _store_change(store, info, start.environment, words, control.observe)
            return await run_engine(info, store, executor, start.environment, control)
        finally:
            await executor.close()


def resumed_info(
    store: SqliteStore, paths: RunPaths, options: RunOptions, environ: Mapping[str, str]
) -> tuple[RunInfo, tuple[str, ...]]:
    """The info of a resumed run with its new settings, and what `options` changed, one line each;
    raises UsageError, and StoreError where this version cannot read it.
    """
    info = current_info(store)
    assert info is not None  # open_run refuses a run that was never started
    refuse_unknown_settings(info, paths.database)
    before = RunConfig.model_validate(info.config)
    last = store.last_trial()
    after = changed_config(before, options, 0 if last is None else last + 1)
    settings = with_price(after.model) if options.model or options.price_usd else after.model
    if after.generator == "openai" and environ.get("OPENAI_BASE_URL"):
        settings = settings.model_copy(update={"base_url": base_url_from(environ)})
    prompts = with_templates(after.prompts) if after.generator == "openai" else after.prompts
    after = after.model_copy(update={"model": settings, "prompts": prompts})
    words = differences(before, after)
    return info.model_copy(update={"config": after.model_dump(mode="json")}), words


def _store_change(
    store: SqliteStore,
    info: RunInfo,
    environment: Environment,
    words: tuple[str, ...],
    observe: Observer,
) -> None:
    settled = count_settled(store, RunConfig.model_validate(info.config), environment)
    change = SettingsChange(made=utc_now(), trial=settled, config=info.config, words=words)
    store.append(ChangeRow(len(changes_of(store)), change))
    for line in words:
        observe(Notice(f"changed from trial {settled} on: {line}"))


def _device_to_request(info: RunInfo, config: RunConfig) -> str:
    """The device of a resumed run: `auto` must not change the kind of device that it began on."""
    if config.device != "auto" or info.environment is None:
        return config.device
    begun = Environment.model_validate(info.environment)
    return begun.device.partition(" ")[0] if begun.is_modelled else "cuda"


def refuse_other_device(info: RunInfo, environment: Environment) -> None:
    """Raises DeviceError if the run began on another device or with another compiler, because their
    times cannot be compared.
    """
    first = Environment.model_validate(info.environment)
    begun, here = _identity(first), _identity(environment)
    if here != begun:
        ways = [*same_compilers(first, environment), "start a new run"]
        raise DeviceError(
            f"run {info.name} began on {begun}; this machine has {here}: {'; or '.join(ways)}"
        )


def _identity(environment: Environment) -> str:
    """The device and compilers; times are comparable only if these are equal.

    The emulator's number of cores does not matter. NVRTC does, because registers and thus occupancy
    come from it.
    """
    name, _, model = environment.device.partition(" ")
    versions = environment.versions
    nvrtc = f"NVRTC {versions['nvrtc']}" if "nvrtc" in versions else "no NVRTC"
    if environment.is_modelled:
        return f"{name} with clang {versions.get('clang', '?')} and {nvrtc}"
    return f"{model} with {nvrtc}"
