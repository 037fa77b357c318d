"""Why elements are NaN, as far as the reference says what a kernel must divide or leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.written_values import not_finite_words
from evoengine.records import DiagnosisKind

MASKS = {"masked_fill", "masked_fill_", "where", "tril", "triu"}
STATISTICS = {"mean", "var", "std", "var_mean", "norm", "vector_norm", "rsqrt", "sqrt"}
# More telling than a mask that would hide all of a row, which looks the same.
EMPTY_ROW = 0.96
NOTHING = 0.87  # than the plain fact
HIDDEN = (
    "Probably a row that sees none of the keys (columns) of some tile or part, all of which are"
    " masked: its maximum is minus infinity there, and minus infinity less itself is NaN; a guard"
    " is missing."
)
DIVIDED = (
    "Probably 0 / 0, as where parts or threads without elements are merged or divided by their"
    " count, or the root of a negative variance."
)


def not_number_leads(
    worst: ComparedOutput, steps: Sequence[ReferenceStep], hints: Sequence[int]
) -> Iterator[Lead]:
    """A guess at most, where nothing but NaN is wrong."""
    nan = worst.wrong & worst.value.isnan() & worst.reference.isfinite()
    if not bool(nan.any()) or bool((worst.bad & ~nan).any()):
        return
    names = {step.name for step in steps}
    if "softmax" in names and names & MASKS and not bool(nan.flatten(0, -2).any(-1).all()):
        guess, weight = HIDDEN, EMPTY_ROW
    elif names & STATISTICS:
        guess, weight = DIVIDED, NOTHING
    else:
        return
    words, evidence = not_finite_words(worst, hints)
    yield Lead(DiagnosisKind.not_finite, f"{words} {guess}", 1.0, weight, evidence)
