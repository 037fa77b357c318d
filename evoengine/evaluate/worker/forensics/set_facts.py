"""What it says which cases and which input sets fail: only odd sizes, only large values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from evoengine.evaluate.worker.forensics.error_region import ErrorRegion
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.records import CaseCheck, DiagnosisKind
from evoengine.task.schema import Task

MULTIPLES = (128, 64, 32, 16, 8, 4, 2)
LARGE = {"outliers", "extreme", "wide", "spikes", "shifted"}


def size_leads(
    task: Task, case: str, passed: Sequence[str], tiles: Sequence[int], region: ErrorRegion
) -> Iterator[Lead]:
    """A dimension that is a multiple of a tile in every case that is right, and not in this one;
    of several one at whose end the output is wrong.
    """
    ends = {part.axis for part in region.parts if part.kind == "last"}
    here = task.scope(case)
    # whether it is wrong at its end, the largest multiple, its dimension and extent
    best: tuple[bool, int, str, int] | None = None
    for name, extent in here.items():
        if isinstance(extent, bool) or not isinstance(extent, int) or not passed:
            continue
        others = [task.scope(other)[name] for other in passed]
        for multiple in {*MULTIPLES, *tiles}:
            odd = multiple > 1 and extent % multiple and all(it % multiple == 0 for it in others)
            if odd and (best is None or (name in ends, multiple) > best[:2]):
                best = (name in ends, multiple, name, extent)
    if best is not None:
        _, multiple, name, extent = best
        yield Lead(
            DiagnosisKind.sizes,
            f"The cases before it are right, and only here {name} = {extent} is no multiple of"
            f" {multiple}: look at the tail.",
            1.0,
            0.5,
            {"dimension": name, "extent": extent, "multiple": multiple},
        )


def inputs_leads(check: CaseCheck, distribution: str) -> Iterator[Lead]:
    """Distributions that fail beside others that pass."""
    failing = {item.distribution for item in check.sets if not item.ok}
    passing = {item.distribution for item in check.sets} - failing
    if not failing or not passing:
        return
    named = ", ".join(sorted(failing))
    kind, words = DiagnosisKind.inputs, f"Only some inputs fail: {named}."
    if failing <= LARGE:
        kind = DiagnosisKind.overflow
        words = (
            f"Only inputs with large values fail ({named}): overflow, a sum that loses accuracy,"
            " or an exponential without its maximum."
        )
        if failing == {"shifted"}:
            words = (
                "Only inputs with a large mean fail (shifted): a difference that cancels, as in a"
                " variance by E[x^2] - mean^2."
            )
    evidence: dict[str, JsonValue] = {
        "failing": [*sorted(failing)],
        "passing": [*sorted(passing)],
    }
    yield Lead(kind, words, 1.0, 0.52 if kind is DiagnosisKind.inputs else 0.8, evidence)
