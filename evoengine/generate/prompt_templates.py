"""Prompts, rendered from the templates in prompts/.

As in EvoEngineer (arXiv 2510.03760) a prompt is built from I1, the task's context; I2,
solutions so far; and I3, what trials have taught. The parts that never change within a
run come first, so that an endpoint can cache the prefix. No template is given the
hidden cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from evoengine import paths
from evoengine.candidate.arch import limits_of
from evoengine.candidate.moved_bytes import bytes_of
from evoengine.emulator.timing_model import combination
from evoengine.errors import TaskError
from evoengine.generate import prompt_context
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import CUT, ParsedReply
from evoengine.generate.reply_text import MAX_THOUGHTS
from evoengine.protocols import Request
from evoengine.records import Reply
from evoengine.task.distributions import DISTRIBUTIONS
from evoengine.task.domain import Domain, label
from evoengine.task.draw import draw_words
from evoengine.task.expression import FUNCTIONS
from evoengine.task.schema import Task, shape_of

MAX_REFERENCE = 12_000  # characters; the longest packaged reference has 3,000
# characters of a reply that a repair prompt repeats: four times the longest seed
MAX_REPLY = 60_000


class Prompts:
    """The prompts of one task; its reference is read from the folder of `task_path`."""

    def __init__(self, task_path: Path) -> None:
        self._task_path = task_path
        self._templates = _environment(paths.prompts_dir())

    def render(self, choice: OperatorChoice, request: Request) -> str:
        """The prompt for the operator of `choice`: prompts/first.jinja, mutate.jinja or
        crossover.jinja.
        """
        template = self._templates.get_template(f"{choice.operator}.jinja")
        return template.render(
            **self._task(request),
            tier=choice.tier,
            elites=prompt_context.elites(request),
            lessons=prompt_context.lessons(request),
            parents=[prompt_context.prompt_context(parent, request) for parent in choice.parents],
            example=self._example(choice, request),
        )

    def repair(self, prompt: str, reply: Reply, parsed: ParsedReply) -> str:
        """The prompt after a reply without a usable kernel: the first prompt, the reply, and what
        is wrong with it.
        """
        return self._templates.get_template("repair.jinja").render(
            prompt=prompt,
            reply=(parsed.kernel or reply.text)[:MAX_REPLY],
            is_kernel=parsed.kernel is not None,
            problem=parsed.problem,
            truncated=reply.finish_reason == CUT,
        )

    def _task(self, request: Request) -> dict[str, Any]:
        task = request.task
        return {
            "task": task.model_copy(update={"hidden_cases": {}}),
            "distributions": DISTRIBUTIONS,
            "dims": {name: label(dimension) for name, dimension in task.dims.items()},
            "has_domains": any(isinstance(item, Domain) for item in task.dims.values()),
            "draws": {
                name: draw_words(spec.draw, spec.dtype)
                for name, spec in task.inputs.items()
                if spec.draw is not None
            },
            "reference": self._reference(task),
            "reference_name": task.reference.rpartition(":")[2],
            "cases": [_case(task, name) for name in task.cases],
            "device": request.environment,
            "sm": _compute_capability(request.environment.arch),
            "limits": limits_of(request.environment).scope(),
            "functions": list(FUNCTIONS),
            "combination": combination.IN_SHORT,
            "baseline_times": prompt_context.baseline_times(request),
            "max_thoughts": MAX_THOUGHTS,
        }

    def _example(
        self, choice: OperatorChoice, request: Request
    ) -> prompt_context.PromptContext | None:
        found = prompt_context.best(request, choice.tier) if not choice.parents else None
        return prompt_context.prompt_context(found, request) if found else None

    def _reference(self, task: Task) -> str:
        path = self._task_path.parent / task.reference.rpartition(":")[0]
        try:
            return path.read_text(encoding="utf-8")[:MAX_REFERENCE]
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path}: the reference cannot be read for a prompt: {error}") from None


def fenced(text: str, language: str = "") -> str:
    """`text` in a fence that it cannot close: longer than any run of backticks within."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def one_line(text: str) -> str:
    """`text` on one line, so that what a model wrote cannot begin a section of the prompt."""
    return " ".join(text.split())


def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - prompts are plain text, no browser reads them
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {"fenced": fenced, "one_line": one_line, "size": _size}
    environment.filters.update(filters)
    return environment


def _case(task: Task, name: str) -> dict[str, Any]:
    """One visible case: its values, the extents of its tensors, and the bytes that must move at
    least once.
    """
    scope = task.scope(name)
    specs = {key: spec.shape for key, spec in task.inputs.items() if spec.shape is not None}
    specs |= {key: spec.shape for key, spec in task.outputs.items()}
    shapes = {key: shape_of(shape, scope) for key, shape in specs.items()}
    return {
        "name": name,
        "binding": ", ".join(
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in scope.items()
        ),
        "shapes": ", ".join(
            f"{key} [{', '.join(str(extent) for extent in shape)}]" for key, shape in shapes.items()
        ),
        "traffic_bytes": sum(bytes_of(task, name)),
        "timed": name in task.objective.cases,
    }


def _compute_capability(arch: str) -> int:
    """89 for sm_89; 0 where it is not known."""
    match = re.fullmatch(r"sm_(\d+)a?", arch)
    return int(match[1]) if match else 0


def _size(count: int) -> str:
    """`count` bytes in the largest unit that fits, e.g. 48 MiB."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"
