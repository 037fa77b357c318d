"""What the findings of a verdict say of the change that is missing.

A finding names the mistake in words, "shifted by 1 ahead", and often an operand: "weight is taken
from another element". Changes of kinds that make such mistakes, and those of statements that read
the operand, come earlier. Of a fault of checked mode see told_fault_changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.told_fault_changes import KIND_TOLD, ToldFault, is_fault

FIRST_FINDINGS = 2  # the others say where and when it is wrong
OPERAND_TOLD = 2.5  # how much likelier a change is of a statement that reads what they name

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
                *("terms", "axes of", "indices of", "bits for", "transposition", "sum of an index"),
                "function of a family, layout",
            ),
        ),
        (
            r"sixteen|every 16|registers|\be [%/] 2|places of every \d+x\d+",
            (
                *("coordinate of a register", "quotient for", "index of the same"),
                *("name for a coord", "half of a fragment", "matrices of a load"),
            ),
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
        (r"never (written|updated)[^;]*: only the first", ("one less", "one more", "number one")),
        (
            r"namely scratch",
            (
                *("scratch", "launch", "reset", "guard", "condition", "statement missing", "grid"),
                *("part of an array", "plan rounded down", "return"),
                *(
                    "bound",
                    "comparison",
                    "quotient",
                    "count of the last",
                    "size of the plan",
                    "end of",
                ),
            ),
        ),
        (
            r"never written|\btail\b|no multiple|beyond a multiple",
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
        (
            r"twice|too many times|again",
            ("term too many", "factor too many", "call dropped", "value of the plan", "sum begun"),
        ),
        (r"negative|negated|\bsign\b", ("sign", "value negated", "operand negated", "negation")),
        (
            r"rounded|fp16|bf16|narrow|half precision",
            ("two conversions", "conversion", "call missing, rounding", "type of a sum"),
        ),
        (r"\bbase\b|log2|exponent|softmax", ("function of a family", "times a constant")),
    )
)

_WHERE = re.compile(r"out\b|\w+ is wrong")  # a finding that says no more than where
_WORD = re.compile(r"\w+")
_OPERANDS = ("pointer", "float")  # sizes are named where they are not meant


def told_by(code: KernelCode, sentences: Sequence[str]) -> ToldChanges | ToldFault:
    """What findings, the most telling first, say of the changes of one kernel."""
    if sentences and is_fault(sentences[0]):
        return ToldFault(code, sentences[0])
    return ToldChanges(code, sentences)


class ToldChanges:
    """What the sentences of findings say of the changes of one kernel."""

    def __init__(self, code: KernelCode, sentences: Sequence[str]) -> None:
        self._code = code
        said = " ".join(sentences[:FIRST_FINDINGS])
        self._kinds = tuple(kind for words, kinds in _TOLD if words.search(said) for kind in kinds)
        self._operands = self._named_operands(sentences[0] if sentences else "")

    def odds(self, kind: str, statements: Sequence[int]) -> float:
        """How much likelier a change of a kind in the statements that begin at some tokens is than
        without the findings.
        """
        odds = KIND_TOLD if kind.startswith(self._kinds) else 1.0
        return odds * (OPERAND_TOLD if any(map(self._reads_operand, statements)) else 1.0)

    def _named_operands(self, sentence: str) -> frozenset[str]:
        """The pointers and numbers of the kernel that the first words of a finding name."""
        if _WHERE.match(sentence):
            return frozenset()
        words = set(_WORD.findall(sentence.partition(":")[0]))
        return frozenset(
            item.name
            for item in self._code.names.all
            if item.sort in _OPERANDS and item.is_parameter and item.name in words
        )

    def _reads_operand(self, statement: int) -> bool:
        if statement < 0 or not self._operands:
            return False
        first, last = self._code.extents.statement(statement)
        return self._code.tokens.has_any(first, last, self._operands)
