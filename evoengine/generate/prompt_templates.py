"""Prompts, rendered from the templates in prompts/.

As in EvoEngineer (arXiv 2510.03760) a prompt is built from I1, the task's context; I2,
solutions so far; and I3, what trials have taught. The parts that never change within a
run come first, so that an endpoint can cache the prefix. What a part says depends on the task's
operations, its tier and the device; which parts fit is decided in prompt_parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evoengine.candidate.kernel_file import MAX_SOURCE_BYTES
from evoengine.config import PromptSettings
from evoengine.generate import directions, prompt_context
from evoengine.generate.lesson_texts import lesson_texts
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import CUT, ParsedReply
from evoengine.generate.prompt_context import PromptContext
from evoengine.generate.prompt_facts import facts
from evoengine.generate.prompt_parts import ALWAYS, Item, PromptPart, PromptText, fitted, part
from evoengine.generate.reply_text import CONTROL
from evoengine.generate.template_folder import TemplateFolder
from evoengine.generate.token_estimate import estimated_tokens
from evoengine.protocols import Evaluated, Request
from evoengine.records import Reply, Status

# characters that a repair prompt repeats of a reply without a kernel, or with one that is too long
# to be taken: four times the longest seed
MAX_REPLY = 60_000

# Ranks: what comes first where the budget does not cover all.
FAILURES, LESSONS, SOLUTIONS, TRIED, ADVICE, BEST, OLDER, EXAMPLE = range(1, 9)
NEW_FAILURES = 3  # that come before all other lessons


class Prompts:
    """The prompts of one task; its reference is read from the folder of `task_path`. Raises
    UsageError for templates of `settings` that cannot be used.
    """

    def __init__(self, task_path: Path, settings: PromptSettings = PromptSettings()) -> None:  # noqa: B008 - frozen
        self._task_path = task_path
        self._tokens = settings.tokens
        own = Path(settings.folder) if settings.folder else None
        self._templates = TemplateFolder(
            own, {"fenced": fenced, "one_line": one_line, "size": _size}
        )

    def render(self, choice: OperatorChoice, request: Request) -> PromptText:
        """The prompt for the operator of `choice`, which is first, mutate or crossover."""
        parts = [
            *_of_task(choice),
            part("advice", "_advice.jinja", ADVICE),
            *_of_trials(choice, request),
            part("what to do", f"{choice.operator}.jinja", ALWAYS),
            part("reply", "_reply.jinja", ALWAYS),
        ]
        return self._fitted(parts, choice, request)

    def repair(
        self, choice: OperatorChoice, request: Request, reply: Reply, parsed: ParsedReply
    ) -> PromptText:
        """The prompt after a reply without a usable kernel. Where the reply holds a whole kernel,
        it is about that one: what the first prompt says of the task, the kernel, and what is wrong
        with it. Otherwise it is the whole first prompt, with the reply.
        """
        is_whole = parsed.kernel is not None and reply.finish_reason != CUT
        repair = part("repair", "repair.jinja", ALWAYS)
        more = {
            "reply": _repeated(parsed.kernel or reply.text, parsed.kernel is not None),
            "reply_characters": len(parsed.kernel or reply.text),
            "is_kernel": parsed.kernel is not None,
            "problem": parsed.problem,
            "truncated": reply.finish_reason == CUT,
        }
        if is_whole:
            parts = [*_of_task(choice), part("reply", "_reply.jinja", ALWAYS), repair]
            more["has_lessons"] = False  # none is above
            return self._fitted(parts, replace(choice, parents=()), request, **more)
        return self.render(choice, request) + self._fitted([repair], choice, request, **more)

    def _fitted(
        self, parts: Sequence[PromptPart], choice: OperatorChoice, request: Request, **more: Any
    ) -> PromptText:
        context = {
            **facts(self._task_path, request, choice.tier),
            "operator": choice.operator,
            "parents": [prompt_context.prompt_context(item, request) for item in choice.parents],
            "baseline_times": prompt_context.baseline_times(request),
            **more,
        }
        context |= self._directions(choice, context)

        def render(template: str, items: Sequence[object]) -> str:
            # a header's YAML can spell them, endpoints refuse some, and terminals obey them
            return CONTROL.sub("", self._templates.render(template, {**context, "items": items}))

        # the budget is for what is said about these
        kernels = [item.source for item in context["parents"]] + [str(more.get("reply", ""))]
        if not choice.parents:
            kernels.append(self._templates.render("_example.jinja", context))
        budget = self._tokens + sum(estimated_tokens(source) for source in kernels)
        return fitted(parts, budget, render)

    def _directions(self, choice: OperatorChoice, context: dict[str, Any]) -> dict[str, Any]:
        """The direction of a first sample, and those of the first samples in flight."""
        if choice.direction is None:
            return {"direction": "", "other_directions": []}
        known = directions.directions_in(self._templates.render("_directions.jinja", context))
        return {
            "direction": choice.direction.of(known),
            "other_directions": choice.direction.of_siblings(known),
        }


def _repeated(text: str, is_kernel: bool) -> str:
    """What a repair prompt repeats of `text`: all of a kernel file that could be taken."""
    fits = is_kernel and len(text.encode()) <= MAX_SOURCE_BYTES
    return text if fits else text[:MAX_REPLY]


def _of_task(choice: OperatorChoice) -> list[PromptPart]:
    """What stays the same within a run: first what all its prompts begin with, then what is of one
    tier, then what a parent can stand for.
    """
    return [
        part("task", "_task.jinja", ALWAYS),
        part("format", "_format.jinja", ALWAYS),
        part("time", "_time.jinja", ALWAYS),
        part("correctness", "_correct.jinja", ALWAYS),
        # a parent is an example of the format, too
        part("example", "_example.jinja", EXAMPLE if choice.parents else ALWAYS),
    ]


def _of_trials(choice: OperatorChoice, request: Request) -> Iterator[PromptPart]:
    """The best solutions, what was tried with the parent's tunables, lessons with their effects,
    failures, the best kernel.
    """
    yield part("solutions", "_solutions.jinja", SOLUTIONS, _solutions(choice, request))
    tried = [prompt_context.tuned(parent, request) for parent in choice.parents]
    yield part("tried values", "_tuned.jinja", TRIED, [item for item in tried if item])
    yield part("lessons", "_claims.jinja", LESSONS, lesson_texts(request.lessons))
    yield PromptPart(
        "last trials", "_lessons.jinja", tuple(_ranked(prompt_context.lessons(request)))
    )
    best = _best_elsewhere(choice, request)
    yield part(
        "best kernel",
        "_best.jinja",
        BEST,
        [prompt_context.prompt_context(best, request)] if best else [],
    )


def _solutions(choice: OperatorChoice, request: Request) -> list[PromptContext | None]:
    """The elites that are not parents; None in their place while there are no elites."""
    elites = prompt_context.elites(request, choice.tier)
    return [item for item in elites if item.trial not in choice.trials] if elites else [None]


def _ranked(lessons: Sequence[PromptContext]) -> Iterator[Item]:
    """The lessons, newest first; the newest failures have the lowest rank."""
    failures = 0
    for lesson in lessons:
        failures += lesson.status != Status.correct
        is_new = lesson.status != Status.correct and failures <= NEW_FAILURES
        yield Item(FAILURES if is_new else OLDER, lesson)


def _best_elsewhere(choice: OperatorChoice, request: Request) -> Evaluated | None:
    """The best kernel, if it is none of the parents."""
    best = prompt_context.best(request, choice.tier)
    digests = {parent.outcome.source_digest for parent in choice.parents}
    return best if best and best.outcome.source_digest not in digests else None


def fenced(text: str, language: str = "") -> str:
    """`text` in a fence that it cannot close: longer than any run of backticks within."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def one_line(text: str) -> str:
    """`text` on one line, so that what a model wrote cannot begin a section of the prompt."""
    return " ".join(text.split())


def _size(count: int) -> str:
    """`count` bytes in the largest unit that fits, e.g. 48 MiB."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"
