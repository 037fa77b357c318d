"""From a reply to a candidate that can be evaluated, or to the words that say why it cannot.

The problem's words are what the model reads in its repair turn, so they never tell a
size of a hidden case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.candidate.binding import OverLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, hint
from evoengine.generate import reply_text as reply_text
from evoengine.protocols import Request
from evoengine.records import Proposal, Reply

FILE_NAME = "kernel.cu"  # what places in messages refer to
CUT = "length"  # the finish reason of a reply that reached max_tokens

# Returns for code that may be compiled, and raises CandidateError, with the place and why, for
# other code. Given from outside: what a compiler may be shown is not this stage's to know.
Refuse = Callable[[str], None]

_PLACE = re.compile(rf"^{re.escape(FILE_NAME)}:(\d+):\d+")


@dataclass(frozen=True)
class ParsedReply:
    """What a reply comes to; `kernel` is the file's text as far as one was found, also when it is
    of no use.
    """

    kernel: str | None
    problem: str  # "" when the kernel can be evaluated
    insight: str
    name: str  # the kernel's name in its header

    @property
    def source(self) -> str | None:
        """The kernel file when it can be evaluated."""
        return None if self.problem else self.kernel

    def proposal(self, operator: str, parents: tuple[int, ...]) -> Proposal:
        """The proposal that this draft comes to."""
        return Proposal(
            operator=operator,
            parents=parents,
            source=self.source,
            problem=self.problem,
            insight=self.insight,
            label=self.name,
        )


def refuse_nothing(code: str) -> None:
    """Returns, for any code."""


def read(reply: Reply, request: Request, refuse: Refuse) -> ParsedReply:
    """The draft in `reply`, checked as far as that needs no compiler."""
    reading = reply_text.read(reply.text)
    insight = "\n".join(reading.thoughts)
    if reading.kernel is None:
        return ParsedReply(None, _cut(reply) + reading.problem, insight, "")
    try:
        parsed = kernel_file.parse(reading.kernel, FILE_NAME)
        _check(parsed, request, refuse)
    except CandidateError as error:
        return ParsedReply(reading.kernel, _cut(reply) + str(error), insight, "")
    return ParsedReply(reading.kernel, "", insight, parsed.plan.name)


def _cut(reply: Reply) -> str:
    """A cut reply explains most of what is wrong with it."""
    if reply.finish_reason != CUT:
        return ""
    return (
        f"the reply was cut after {reply.usage.completion_tokens or 'the largest number of'}"
        " tokens, so the kernel is not whole; "
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
        try:
            binding.bind(parsed, task, case, limits)
        except CandidateError as error:
            raise (_veiled(error, parsed) if case in task.hidden_cases else error) from None


def _veiled(error: CandidateError, parsed: Candidate) -> CandidateError:
    """`error` of a hidden case without the numbers in it, which would tell the case's sizes."""
    place = _PLACE.match(str(error))
    line = parsed.source.split("\n")[int(place[1]) - 1].strip() if place else ""
    what = (
        "asks for more than the device has"
        if isinstance(error, OverLimits)
        else "cannot be evaluated, or a requirement does not hold,"
    )
    return CandidateError(
        f"{place[0] if place else FILE_NAME}: {line!r} {what} in a hidden case; hidden cases have"
        " other sizes, odd and small ones too: make the plan hold for every size that the"
        " reference takes"
    )
