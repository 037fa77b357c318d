"""What the findings of a verdict say of the change that is missing.

A finding names the mistake in words, "shifted by 1 ahead", and often an operand: "weight is taken
from another element". Changes of kinds that make such mistakes, and those of statements that read
the operand, come earlier. A fault of checked mode names lines and the array: changes of statements
that have one of them come earlier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evoengine.evaluate.repair.kernel_code import KernelCode

FIRST_FINDINGS = 2  # the others say where and when it is wrong
KIND_TOLD, OPERAND_TOLD = 2.5, 2.5  # how much likelier a change is of which the findings speak
# A fault says where: a change in its lines, or of its array, is so much likelier.
LINE_TOLD, ARRAY_TOLD = 2.0, 4.0
# Where it says that a barrier is missing, one near its lines is, or the stage is the wrong one:
# those are tried first. A kernel has a place for a barrier behind each statement, so that one
# of them alone is unlikely.
STAGE_TOLD, BARRIER_TOLD, BARRIER_LINES = 15.0, 200.0, 4

# words of a finding, and the begins of the kinds that mend what it says
_TOLD: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(words, re.IGNORECASE), kinds)
    for words, kinds in (
        (
            r"shifted|\bahead\b|\bbehind\b|previous|neighbour|off by one",
            ("one less", "one more", "number one", "term too many", "summand missing", "sign"),
        ),
        (
            r"\bhalf of|of every|left out|leaves out|last tile|first tile",
            (
                *("number", "bound", "quotient", "term too many", "range of a loop", "condition"),
                *("step of a loop", "count for", "loop over the rest", "bits of a lane"),
            ),
        ),
        (
            r"not divided|divisor|divided by|number of elements|\bmean\b",
            ("divisor", "factor missing", "name for another as a divisor", "term too many"),
        ),
        (
            r"transposed|fragment|exchanged|reverse|mixed up|layout",
            (
                *("names exchanged", "arguments", "member", "layout", "type", "coordinates"),
                *("terms", "axes of", "indices of", "bits for", "transposition"),
            ),
        ),
        (
            r"sixteen|every 16|registers|\be [%/] 2|places of every 16x8",
            ("coordinate of a register", "quotient for", "index of the same", "name for a coord"),
        ),
        (
            r"last element|past the end|last key|beyond the end",
            ("comparison by one", "bound of a term", "bound missing", "condition of a value"),
        ),
        (
            r"rescal|\btotals?\b|common maximum",
            ("rescaling", "factor missing, beside", "part missing", "factor missing, float"),
        ),
        (r"divisor|\bflag\b|padding", ("flag negated", "bound of a term", "part missing")),
        (
            r"counted (twice|\d+ times|several)|tiles? (of|in) turn",
            ("step of a loop", "number doubled in a loop", "range of a loop"),
        ),
        (
            r"offset of the tile|counted from the begin|later tiles",
            ("part missing", "summand missing", "term of another place", "row of an index"),
        ),
        (
            r"not set back|sums of the (row|tile) before|kept from",
            ("reset", "assignment", "value never taken", "other stage"),
        ),
        (
            r"first row|row 0|(from|of) another|\bindex\b|shared|\bgroup",
            ("row of an index", "begin of a row", "name for", "index of", "name that", "factor"),
        ),
        (
            r"never written|\btail\b|no multiple",
            (
                *("grid", "bound", "condition", "comparison", "quotient", "name of the plan"),
                *("rest of a loop", "loop over the rest", "end of a part"),
            ),
        ),
        (r"\bmask|later keys|future", ("comparison", "mask", "condition", "one more", "case of")),
        (
            r"not added|not applied|not subtracted|missing|forgotten",
            ("summand", "factor missing", "call missing", "statement missing", "unread", "square"),
        ),
        (r"twice|too many times|again", ("term too many", "factor too many", "call dropped")),
        (r"negative|negated|\bsign\b", ("sign", "value negated", "operand negated", "negation")),
        (
            r"rounded|fp16|bf16|narrow|half precision",
            ("two conversions", "conversion", "call missing, rounding", "type of a sum"),
        ),
        (r"\bbase\b|log2|exponent|softmax", ("function of a family", "times a constant")),
    )
)
# the same for faults, by the begin of their sentence
_TOLD_OF_FAULTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"race"),
        ("barrier", "other stage", "statements exchanged", "condition", "atomic", "row of"),
    ),
    (
        re.compile(r"uninitialised"),
        ("barrier", "reset", "bound", "range", "end of", "number", "launch", "scratch"),
    ),
    (re.compile(r"async copy"), ("too many copies", "other stage", "barrier", "term", "index of")),
    (
        re.compile(r"out of bounds"),
        ("bound", "condition", "comparison", "grid", "limit", "mask", "term too many"),
    ),
    (re.compile(r"divergent barrier"), ("statements", "return", "condition", "moved")),
)
_FAULT = re.compile(r"race\b|uninitialised\b|async copy\b|out of bounds\b|misaligned\b|divergent ")
_FAULT_LINE = re.compile(r"\bline (\d+)")
_FAULT_ARRAY = re.compile(r"\b([A-Za-z_]\w*)(?: \(shared)?\+\d")

_WHERE = re.compile(r"out\b|\w+ is wrong")  # a finding that says no more than where
_WORD = re.compile(r"\w+")


class ToldChanges:
    """What the sentences of findings say of the changes of one kernel."""

    def __init__(self, code: KernelCode, sentences: Sequence[str]) -> None:
        self._code = code
        self._lacks_barrier = False
        first = sentences[0] if sentences else ""
        if _FAULT.match(first):
            self._kinds = tuple(
                kind for begin, kinds in _TOLD_OF_FAULTS if begin.match(first) for kind in kinds
            )
            self._lines = frozenset(map(int, _FAULT_LINE.findall(first)))
            self._arrays = frozenset(_FAULT_ARRAY.findall(first)) - {"shared"}
            self._lacks_barrier = "no __sync" in first
            self._operands = frozenset[str]()
            return
        said = " ".join(sentences[:FIRST_FINDINGS])
        self._kinds = tuple(kind for words, kinds in _TOLD if words.search(said) for kind in kinds)
        self._operands = self._named_operands(first)
        self._lines, self._arrays = frozenset(), frozenset()

    def odds(self, kind: str, statements: Sequence[int]) -> float:
        """How much likelier a change of a kind in the statements that begin at some tokens is than
        without the findings.
        """
        odds = KIND_TOLD if kind.startswith(self._kinds) else 1.0
        if self._lacks_barrier and kind.startswith("other stage"):
            return STAGE_TOLD
        if self._lacks_barrier and kind.startswith("barrier missing"):
            away = min(map(self._lines_away, statements), default=BARRIER_LINES + 1)
            return BARRIER_TOLD / (1 + away) if away <= BARRIER_LINES else odds
        if self._lines or self._arrays:
            return odds * max(map(self._odds_of_fault, statements), default=1.0)
        return odds * (OPERAND_TOLD if any(map(self._reads_operand, statements)) else 1.0)

    def _odds_of_fault(self, statement: int) -> float:
        if statement < 0:
            return 1.0
        first, last = self._code.extents.statement(statement)
        if self._arrays and self._names(first, last, self._arrays):
            return ARRAY_TOLD
        is_told = any(self._line(place) in self._lines for place in (first, last))
        return LINE_TOLD if is_told else 1.0

    def _lines_away(self, statement: int) -> int:
        """How many lines are between the end of a statement and the nearest line of the fault."""
        if statement < 0:
            return BARRIER_LINES + 1
        end = self._line(self._code.extents.statement(statement)[1])
        return min((abs(end - line) for line in self._lines), default=BARRIER_LINES + 1)

    def _line(self, place: int) -> int:
        """The line of a token in the whole source."""
        before = self._code.source.count("\n", 0, self._code.offset)
        return before + self._code.tokens.line(place)

    def _named_operands(self, sentence: str) -> frozenset[str]:
        """The pointers of the kernel that the first words of a finding name."""
        if _WHERE.match(sentence):
            return frozenset()
        words = set(_WORD.findall(sentence.partition(":")[0]))
        return frozenset(
            item.name
            for item in self._code.names.all
            if item.sort == "pointer" and item.is_parameter and item.name in words
        )

    def _reads_operand(self, statement: int) -> bool:
        if statement < 0 or not self._operands:
            return False
        first, last = self._code.extents.statement(statement)
        return self._names(first, last, self._operands)

    def _names(self, first: int, last: int, names: frozenset[str]) -> bool:
        return any(self._code.tokens.text(place) in names for place in range(first, last + 1))
