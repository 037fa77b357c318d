"""What a prompt is made from: a task of which nothing is known yet, or a stored run; and the prompt
itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from evoengine.candidate import kernel_file
from evoengine.config import RunConfig
from evoengine.digest import derived_seed
from evoengine.errors import UsageError, hint
from evoengine.evaluate.compile.includes import check_includes
from evoengine.evaluate.device_choice import choose_device
from evoengine.evaluate.device_description import describe_device
from evoengine.generate import parsed_reply
from evoengine.generate.operators import choose, choose_as
from evoengine.generate.prompt_templates import Prompts
from evoengine.paths import RunPaths, find_kernel, find_task
from evoengine.protocols import Evaluated, Exhausted, Replies, Request
from evoengine.records import Elite, Outcome, Proposal, Reply, Status, Verdict, outcome_of
from evoengine.search.choose_run import starting_kernel
from evoengine.search.engine import Engine
from evoengine.search.run_engine import starting_kernels
from evoengine.search.run_reader import RunReader
from evoengine.task import schema as tasks
from evoengine.task.schema import Task

PLACES = int(RunConfig.model_fields["places"].default)


@dataclass(frozen=True)
class Asked:
    """A request with the task's file; `notes` say where its prompt is not what a run would send."""

    name: str  # of the task or the run
    task_path: Path
    request: Request
    notes: list[str]


@dataclass(frozen=True)
class Rendered:
    """A prompt, and what it was made for."""

    text: str
    facts: dict[str, object]


def of_task(text: str, kernels: list[str], device: str, seed: int) -> Asked:
    """The first request of a run of the task; raises TaskError, UsageError, CandidateError,
    DeviceError.
    """
    path = find_task(text).resolve()
    task = tasks.load(path)
    environment = describe_device(
        choose_device(device, task.target.arch if task.target else None, missing=list)
    )
    files = [find_kernel(name, path.parent) for name in kernels or task.seeds_from]
    seeds = tuple(_unjudged(trial, file, task) for trial, file in enumerate(files))
    request = Request(
        trial=len(files),
        seed=derived_seed(seed, len(files)),
        task=task,
        environment=environment,
        seeds=seeds,
        elites=_in_order(seeds),
        recent=(),
        pending=_nothing_pending,
    )
    note = (
        "nothing is judged yet: the starting kernels stand without times and in the order of the"
        " task, as if all were correct"
    )
    return Asked(task.name, path, request, [note] if files else [])


def _unjudged(trial: int, file: Path, task: Task) -> Evaluated:
    proposal = starting_kernel(file)
    tier = kernel_file.parse(proposal.source or "", str(file)).plan.precision
    if tier not in task.tiers:
        raise UsageError(
            f"{file}: precision {tier!r} is no tier of task {task.name}{hint('', task.tiers)}"
        )
    verdict = Verdict(status=Status.correct, reason="not judged", tier=tier)
    return Evaluated(outcome_of(trial, proposal, verdict), proposal.source or "", verdict)


def _in_order(seeds: tuple[Evaluated, ...]) -> tuple[tuple[Elite, Evaluated], ...]:
    """As many as there are places in each tier, the first ones first."""
    taken: Counter[str] = Counter()
    held = []
    for evaluated in seeds:
        tier = evaluated.outcome.tier
        taken[tier] += 1
        if taken[tier] <= PLACES:
            held.append((Elite(tier=tier, place=taken[tier], outcome=evaluated.outcome), evaluated))
    return tuple(sorted(held, key=lambda pair: (pair[0].tier, pair[0].place)))


async def _nothing_pending() -> tuple[Proposal, ...]:
    return ()


def of_run(paths: RunPaths) -> Asked:
    """The next request of a stored run, which may be live; raises EvoError."""
    with RunReader(paths) as reader:
        info, environment, store = reader.info, reader.environment, reader.folder.store
        config, task = RunConfig.model_validate(info.config), Task.model_validate(info.task)
        if environment is None:
            raise UsageError(f"{paths.root}: the run does not tell its device")
        seeds = starting_kernels(store, config)
        onlooker = _Onlooker()
        engine = Engine(
            task=task,
            config=config,
            environment=environment,
            seeds=seeds,
            generator=onlooker,
            executor=onlooker,
            store=store,
        )
        engine.restore()
        request, exact = engine.next_request()
    return Asked(
        info.name, Path(config.task), request, list(_doubts(config, request, exact, engine.settled))
    )


def _doubts(config: RunConfig, request: Request, exact: bool, settled: int) -> list[str]:
    doubts = []
    if request.trial >= config.trials:
        doubts.append(
            f"all {config.trials} trials of the budget are proposed: this is what the next one"
            " would be sent"
        )
    if config.generator != "openai":
        doubts.append(f"the run's generator is {config.generator}: no model is asked in it")
    if not exact:
        doubts.append(
            f"{settled} trials are settled; others before trial {request.trial} are not, and may"
            " still change this prompt"
        )
    return doubts


class _Onlooker:
    """Generator and executor of a run that is only looked at: told of what happened, and never
    asked.
    """

    def tell(self, outcome: Outcome) -> None:
        """Nothing is kept."""

    async def propose(self, request: Request, replies: Replies) -> NoReturn:
        raise Exhausted("the run is only looked at")

    async def start(self) -> NoReturn:
        raise Exhausted("the run is only looked at")

    async def evaluate(self, *_: object, **__: object) -> NoReturn:
        raise Exhausted("the run is only looked at")

    async def close(self) -> None:
        """Nothing is open."""


def render(asked: Asked, operator: str | None, reply: Path | None) -> Rendered:
    """The prompt, by the code that a run has; with a `reply` that cannot be used, the repair turn
    after it.
    """
    prompts, request = Prompts(asked.task_path), asked.request
    choice = choose(request) if operator is None else choose_as(operator, request)
    text = prompts.render(choice, request)
    facts = {
        "name": asked.name,
        "trial": request.trial,
        "operator": choice.operator,
        "tier": choice.tier,
        "parents": list(choice.trials),
    }
    if reply is None:
        return Rendered(text, facts)
    given = Reply(model="", prompt=text, text=_read(reply))
    made = parsed_reply.read(given, request, check_includes)
    if made.source is not None:
        raise UsageError(
            f"{reply}: this reply holds a usable kernel, so no repair turn would follow it"
        )
    return Rendered(prompts.repair(text, given, made), {**facts, "operator": "repair"})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--reply: {path} cannot be read: {error}") from None
