"""A model's reply, parsed: a kernel file that can be evaluated, or the problem with it.

The model reads the problem in its repair turn, so `bind` says nothing there about the sizes
of a hidden case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, hint
from evoengine.generate import reply_text
from evoengine.protocols import Request
from evoengine.records import Proposal, Reply

FILE_NAME = "kernel.cu"  # what places in messages refer to
CUT = "length"  # the finish reason of a reply that reached max_tokens

# Raises CandidateError, with the place and the reason, for code that may not be compiled. It is a
# parameter, because this stage does not know the compilers' rules.
Refuse = Callable[[str], None]


@dataclass(frozen=True)
class ParsedReply:
    """A parsed reply; `kernel` is the text of the kernel file found in it, usable or not."""

    kernel: str | None
    problem: str  # "" when the kernel can be evaluated
    insight: str
    name: str  # the kernel's name in its header

    @property
    def source(self) -> str | None:
        """The kernel file when it can be evaluated."""
        return None if self.problem else self.kernel

    def proposal(self, operator: str, parents: tuple[int, ...]) -> Proposal:
        """The proposal of this reply."""
        return Proposal(
            operator=operator,
            parents=parents,
            source=self.source,
            problem=self.problem,
            insight=self.insight,
            label=self.name,
        )


def refuse_nothing(code: str) -> None:
    """Accept any code."""


def read(reply: Reply, request: Request, refuse: Refuse) -> ParsedReply:
    """`reply`, parsed, and checked as far as possible without a compiler."""
    reading = reply_text.read(reply.text)
    insight = "\n".join((*reading.thoughts, *reading.lessons.lines))
    if reading.kernel is None:
        return ParsedReply(None, _cut(reply) + reading.problem, insight, "")
    try:
        parsed = kernel_file.parse(reading.kernel, FILE_NAME)
        _check(parsed, request, refuse)
    except CandidateError as error:
        return ParsedReply(reading.kernel, _cut(reply) + str(error), insight, "")
    return ParsedReply(reading.kernel, "", insight, parsed.plan.name)


def _cut(reply: Reply) -> str:
    """The note on a reply that was cut, which explains most other problems; "" for a whole one."""
    if reply.finish_reason != CUT:
        return ""
    return (
        f"the reply was cut after {reply.usage.completion_tokens or 'the largest number of'}"
        " tokens, so the kernel is incomplete; "
    )


def _check(parsed: Candidate, request: Request, refuse: Refuse) -> None:
    """Raises CandidateError for the first thing that would keep `parsed` from being compiled."""
    task = request.task
    tier = parsed.plan.precision
    if tier not in task.tiers:
        place = parsed.header.at(("precision",))
        raise CandidateError(f"{place}: no tier {tier!r}{hint('', task.tiers)}")
    functions = {launch.function.rpartition("::")[2] for launch in parsed.plan.launches}
    for function in sorted(functions):
        if not re.search(rf"\b{re.escape(function)}\b", parsed.code):
            raise CandidateError(
                f"{FILE_NAME}: the header launches {function!r}, but the code defines no such"
                " kernel"
            )
    refuse(parsed.code)
    limits = limits_of(request.environment)
    for case in task.all_cases:
        binding.bind(parsed, task, case, limits)
