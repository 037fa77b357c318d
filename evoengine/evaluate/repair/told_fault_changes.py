"""What a fault of checked mode says of the change that is missing: lines, array and kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from evoengine.evaluate.repair.kernel_code import KernelCode

KIND_TOLD = 2.5  # how much likelier a change is of a kind that mends such a fault
# A fault says where: a change in its lines, or of its array, is so much likelier.
LINE_TOLD, ARRAY_TOLD = 2.0, 4.0
# Where it says that a barrier is missing, one near its lines is, or the stage is the wrong one:
# those are tried first. A kernel has a place for a barrier behind each statement, so that one
# of them alone is unlikely.
STAGE_TOLD, BARRIER_TOLD, BARRIER_LINES = 15.0, 200.0, 4
MOST_CALLS = 3  # of functions within functions, from the lines of a race on
# Where it says that nothing was written to global memory, scratch is to be filled beforehand.
SCRATCH_TOLD = 60.0
# Where an access lies beyond the end of shared memory, the launch reserves too little of it.
RESERVED_TOLD = 40.0
# Where it says how many groups of copies may be left, or that a barrier is missing.
GROUPS_TOLD = 20.0
# Where groups of warps have barriers of their own, one of them may arrive too early.
ARRIVAL_TOLD = 40.0
# Where an access is misaligned, it takes several elements of a row whose length they do not divide.
ALIGNED_TOLD = 40.0
# What blocks say to one another, and where they count themselves, where one reads what no other
# has written, or two write the same.
ATOMIC_TOLD = 4.0
# Where two blocks take the same place, one of them alone may have to.
ONE_BLOCK_TOLD = 20.0

# by the begin of its sentence, the begins of the kinds that mend it
_KINDS: dict[str, tuple[str, ...]] = {
    "race": (
        *("barrier", "other stage", "statement", "condition", "atomic", "row of", "fence"),
        *("one of", "stage", "other buffer", "steps ahead", "wait for", "share that", "comparison"),
        "axis of the grid",
    ),
    "uninitialised": (
        *("barrier", "reset", "bound", "range", "end of", "number", "launch", "scratch"),
        *("statement", "array not cleared", "begin of", "part of shared", "element that"),
        *("index transposed", "sum of an index"),
        "axis of the grid",
    ),
    "async copy": (
        *("too many copies", "other stage", "barrier", "term", "index of", "statement", "commit"),
        *("wait for", "stage of", "other buffer", "steps ahead", "groups of copies", "comparison"),
    ),
    "out of bounds": (
        *("bound", "condition", "comparison", "grid", "limit", "mask", "term too many"),
        *("pitch of", "count of", "constant of", "stages of", "end of"),
    ),
    "misaligned": ("whole vectors",),
    "divergent barrier": ("statements", "return", "condition", "moved"),
    "mixed barrier": ("barrier", "number"),
    "deadlock": (
        *("barrier", "number", "factor", "condition", "return", "statement", "arrival", "name for"),
        *("guard", "comparison"),
    ),
}
_RESERVED = ("shared memory of another size", "stages of shared memory", "size of the plan")
_ATOMICS = frozenset(
    f"atomic{name}" for name in ("Add", "Sub", "Inc", "Dec", "Exch", "CAS", "Max", "Min", "Or")
)
_FAULT = re.compile(rf"({'|'.join(_KINDS)})\b")
_LINE = re.compile(r"\bline (\d+)")
_ARRAY = re.compile(r"\b([A-Za-z_]\w*)(?: \(shared)?\+\d")


def is_fault(sentence: str) -> bool:
    """Whether a finding is a fault of checked mode."""
    return _FAULT.match(sentence) is not None


class ToldFault:
    """What the sentence of a fault says of the changes of one kernel."""

    def __init__(self, code: KernelCode, sentence: str) -> None:
        begin = _FAULT.match(sentence)
        self._code = code
        self._first_line = code.source.count("\n", 0, code.offset)
        self._kinds = _KINDS[begin[1]] if begin else ()
        lines = list(map(int, _LINE.findall(sentence)))
        self._lines = frozenset(lines)
        self._calls = frozenset(self._calling_lines(lines))
        self._arrays = frozenset(_ARRAY.findall(sentence)) - {"shared"}
        self._lacks_barrier = "no __sync" in sentence
        self._is_misaligned = sentence.startswith("misaligned")
        self._is_beyond_shared = "beyond its end" in sentence and "(shared+" in sentence
        self._has_copies_left = "wait_group between them must be" in sentence
        self._is_between_blocks = " of block " in sentence or "global memory to which" in sentence
        self._lacks_writes = "global memory to which nothing was written" in sentence
        self._ends: dict[int, tuple[int, int]] = {}  # of statements, the lines

    def odds(self, kind: str, statements: Sequence[int]) -> float:
        """As ToldChanges.odds."""
        odds = KIND_TOLD if kind.startswith(self._kinds) else 1.0
        if self._lacks_writes and kind == "scratch not filled":
            return SCRATCH_TOLD
        if self._is_beyond_shared and kind.startswith(_RESERVED):
            return RESERVED_TOLD
        # copies that are waited for too late look like a missing barrier between threads
        is_of_copies = self._has_copies_left or self._lacks_barrier
        if is_of_copies and kind == "groups of copies by one":
            return GROUPS_TOLD
        if self._is_between_blocks and kind == "work of one block alone":
            return ONE_BLOCK_TOLD
        if self._is_misaligned and kind == "whole vectors only":
            return ALIGNED_TOLD
        if self._lacks_barrier and kind == "arrival before the work":
            return ARRIVAL_TOLD
        if self._lacks_barrier and kind.startswith("other stage"):
            return STAGE_TOLD
        if self._lacks_barrier and kind.startswith("barrier missing"):
            away = min(map(self._lines_away, statements), default=BARRIER_LINES + 1)
            return BARRIER_TOLD / (1 + away) if away <= BARRIER_LINES else odds
        return odds * max(map(self._odds_of, statements), default=1.0)

    def _odds_of(self, statement: int) -> float:
        if statement < 0:
            return 1.0
        first, last = self._code.extents.statement(statement)
        if self._code.tokens.has_any(first, last, self._arrays):
            return ARRAY_TOLD
        if self._is_between_blocks and self._code.tokens.has_any(first, last, _ATOMICS):
            return ATOMIC_TOLD
        return 1.0 if self._lines.isdisjoint(self._lines_of(statement)) else LINE_TOLD

    def _lines_away(self, statement: int) -> int:
        """How many lines are between the end of a statement and the nearest line of the fault."""
        if statement < 0:
            return BARRIER_LINES + 1
        _, end = self._lines_of(statement)
        lines = self._lines | self._calls
        return min((abs(end - line) for line in lines), default=BARRIER_LINES + 1)

    def _calling_lines(self, lines: Iterable[int]) -> Iterator[int]:
        """The lines that call the functions in which lines stand, and those that call these:
        barriers are often between calls.
        """
        tokens, lines = self._code.tokens, set(lines)
        for _ in range(MOST_CALLS):
            names = {
                name
                for place in range(len(tokens))
                if self._first_line + tokens.line(place) in lines
                for name in self._functions_around(place)
            }
            lines = {
                self._first_line + tokens.line(place)
                for place in range(len(tokens))
                if tokens.text(place) in names
                and self._code.function_places[place]
                and tokens.text(place + 1) != "="
            }
            yield from lines

    def _functions_around(self, place: int) -> Iterator[str]:
        """The names of the functions and lambdas of the kernel in which a token stands."""
        tokens = self._code.tokens
        while (place := tokens.enclosing[place]) >= 0:
            opening = tokens.partners.get(place - 1, -1) if tokens.text(place - 1) == ")" else -1
            if tokens.text(place) != "{" or opening < 1:
                continue
            captures = tokens.partners.get(opening - 1, 0)
            if tokens.text(opening - 1) == "]" and tokens.text(captures - 1) == "=":
                yield tokens.text(captures - 2)
            elif tokens.enclosing[place] == -1:
                yield tokens.text(opening - 1)

    def _lines_of(self, statement: int) -> tuple[int, int]:
        """The first and the last line of a statement in the whole source."""
        if statement not in self._ends:
            first, last = map(self._code.tokens.line, self._code.extents.statement(statement))
            self._ends[statement] = self._first_line + first, self._first_line + last
        return self._ends[statement]
