"""Builds the request of a new task or a stored run, and renders its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from evoengine.config import PromptSettings, RunConfig
from evoengine.errors import UsageError, hint
from evoengine.evaluate.compile.includes import check_includes
from evoengine.evaluate.device_choice import choose_device
from evoengine.evaluate.device_description import describe_device
from evoengine.generate import parsed_reply
from evoengine.generate.method_registry import method_of
from evoengine.generate.prompt_parts import PromptText
from evoengine.generate.prompt_templates import Prompts
from evoengine.generate.tuning_slots import TuningSlots
from evoengine.paths import RunPaths, find_kernel, find_task
from evoengine.protocols import Evaluated, Exhausted, Replies, Request
from evoengine.records import Outcome, Reply
from evoengine.search.changes import template_changes, with_templates
from evoengine.search.choose_run import default_tune_share, starting_kernel
from evoengine.search.engine import Engine
from evoengine.search.run_reader import RunReader
from evoengine.search.starting_kernels import starting_kernels
from evoengine.search.tier_options import tiers_from
from evoengine.search.unevaluated_request import unevaluated, unevaluated_request
from evoengine.task.load import load_task
from evoengine.task.schema import Task


@dataclass(frozen=True)
class PromptRequest:
    """A request, and notes on how its prompt may differ from the one that a run would send."""

    name: str  # of the task or the run
    task_path: Path
    request: Request
    notes: list[str]
    settings: PromptSettings = PromptSettings()  # noqa: RUF009 - frozen
    method: str = "full"  # of the search, by name


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt with the counts of its parts, and facts about its request, for JSON."""

    prompt: PromptText
    facts: dict[str, object]


def request_of_task(
    text: str,
    kernels: list[str],
    device: str,
    seed: int,
    method: str = "full",
    tiers: Sequence[str] = (),
) -> PromptRequest:
    """The first request of a run of the task, which searches `tiers`, given as to `run`; raises
    TaskError, UsageError, CandidateError, DeviceError.
    """
    path = find_task(text).resolve()
    task = load_task(path)
    environment = describe_device(
        choose_device(device, task.target.arch if task.target else None, missing=list)
    )
    files = [find_kernel(name, path.parent) for name in kernels or task.seeds_from]
    seeds = tuple(_starting(trial, file, task) for trial, file in enumerate(files))
    tuning = TuningSlots(len(files), default_tune_share(method)).before(task.budget.trials)
    request = replace(
        unevaluated_request(task, environment, seeds, seed),
        tuning_trials=tuning,
        tiers=tiers_from(tiers, task),
    )
    note = (
        "no kernel is evaluated: the starting kernels have no times, are in the task's order and"
        " are taken as correct"
    )
    return PromptRequest(task.name, path, request, [note] if files else [], method=method)


def _starting(trial: int, file: Path, task: Task) -> Evaluated:
    """The kernel in `file` as if it were correct; raises UsageError where its tier is none of the
    task's.
    """
    found = unevaluated(trial, starting_kernel(file))
    if found.outcome.tier not in task.tiers:
        raise UsageError(
            f"{file}: precision {found.outcome.tier!r} is not a tier of task"
            f" {task.name}{hint('', task.tiers)}"
        )
    return found


def request_of_run(paths: RunPaths) -> PromptRequest:
    """The next request of a stored run, which may be live; raises EvoError."""
    with RunReader(paths) as reader:
        info, environment, store = reader.info, reader.environment, reader.folder.store
        config, task = reader.config, Task.model_validate(info.task)
        if environment is None:
            raise UsageError(f"{paths.root}: the run does not record its device")
        seeds = starting_kernels(store, config)
        read_only = _ReadOnlyParts()
        engine = Engine(
            task=task,
            config=config,
            environment=environment,
            seeds=seeds,
            generator=read_only,
            executor=read_only,
            store=store,
            timing_version=info.timing_version,
        )
        engine.restore()
        request, final = engine.next_request()
    return PromptRequest(
        info.name,
        Path(config.task),
        request,
        list(_notes(config, request, final, engine.settled)),
        config.prompts,
        config.method,
    )


def _notes(config: RunConfig, request: Request, final: bool, settled: int) -> list[str]:
    notes = []
    if request.trial >= config.trials:
        notes.append(
            f"all {config.trials} trials of the budget are proposed: this is the prompt of one more"
            " trial"
        )
    if config.generator != "openai":
        notes.append(f"the run's generator is {config.generator}, which asks no model")
    if TuningSlots(len(request.seeds), config.tune_share).has(request.trial):
        notes.append(
            f"trial {request.trial} tunes and sends no prompt: this is the one for the case that"
            " nothing is left to tune"
        )
    if not final:
        notes.append(
            f"{settled} trials are settled; other trials before trial {request.trial} are not, and"
            " may still change this prompt"
        )
    return notes


class _ReadOnlyParts:
    """A generator and executor for an engine that only reads a run: they refuse all work."""

    def tell(self, outcome: Outcome) -> None:
        """Ignores the outcome."""

    async def propose(self, request: Request, replies: Replies) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def start(self) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def audit(self, _: object) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def evaluate(self, *_: object, **__: object) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def race(self, *_: object) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def activity(self, *_: object) -> NoReturn:
        raise Exhausted("the run is opened for reading only")

    async def close(self) -> None:
        """Has nothing to close."""


def template_notes(settings: PromptSettings) -> list[str]:
    """That templates of a run have changed since it read them; mostly nothing."""
    return [
        f"{line}, since the run read them: a resume sends this prompt and records the change"
        for line in template_changes(settings, with_templates(settings))
    ]


def render(
    prompt_request: PromptRequest, operator: str | None, reply: Path | None
) -> RenderedPrompt:
    """The prompt of a request; with an unusable `reply`, the repair prompt that follows it."""
    prompts = Prompts(prompt_request.task_path, prompt_request.settings)
    method = method_of(prompt_request.method)
    choice = method.choose(prompt_request.request, operator)
    request = method.visible(prompt_request.request, choice)
    first = prompts.render(choice, request)
    facts = {
        "name": prompt_request.name,
        "trial": request.trial,
        "method": prompt_request.method,
        "operator": choice.operator,
        "tier": choice.tier,
        "parents": list(choice.trials),
    }
    if reply is None:
        return RenderedPrompt(first, facts)
    stored_reply = Reply(model="", prompt=first.text, text=_read(reply))
    parsed = parsed_reply.read(stored_reply, request, check_includes)
    if parsed.source is not None:
        raise UsageError(f"{reply}: this reply has a usable kernel, so no repair prompt follows it")
    return RenderedPrompt(
        prompts.repair(choice, request, stored_reply, parsed), {**facts, "operator": "repair"}
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--reply: {path} cannot be read: {error}") from None
