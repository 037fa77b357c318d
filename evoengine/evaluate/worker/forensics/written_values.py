"""What the values of an output alone show: never written, constant, not finite, rounded."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import JsonValue

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, sampled
from evoengine.evaluate.worker.forensics.error_region import ErrorRegion, error_region
from evoengine.evaluate.worker.forensics.lead import Lead, figure
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

NARROWER = {
    torch.float32: (
        ("e4m3", torch.float8_e4m3fn),
        ("bf16", torch.bfloat16),
        ("fp16", torch.float16),
    ),
    torch.float16: (("e4m3", torch.float8_e4m3fn), ("bf16", torch.bfloat16)),
    torch.bfloat16: (("e4m3", torch.float8_e4m3fn),),
}
PACKS, LEAST_PACKS, MOST_OF_A_PHASE = (4, 8), 4, 0.9
LEAST_ELEMENTS = 32  # fewer values may look rounded, or equal, by chance


def unwritten_leads(compared: ComparedOutput, inputs: Tensors, hints: Sequence[int]) -> list[Lead]:
    """Elements that still hold what they held before the call."""
    in_place = compared.name in inputs
    count = int(compared.unwritten.sum())
    if not count:
        return []
    region = error_region(compared.unwritten, compared.axes, hints)
    bad = int(compared.bad.sum())
    grid = _exchanged_grid(compared) or _missing_tile(region)
    held = (
        f"never updated: they are left as they were given, the old values of {compared.name}"
        if in_place
        else "never written"
    )
    return [
        Lead(
            DiagnosisKind.never_written,
            f"{count} of {compared.value.numel()} elements of {compared.name} are {held}:"
            f" {region.words}{grid}{_empty_groups(compared, inputs)}"
            f"{_updated_instead(compared) if in_place else ''}.",
            count / bad,
            1.3,
            {"elements": count, **region.evidence},
        )
    ]


def _share_of(elements: torch.Tensor) -> float:
    """The share of bools that hold."""
    return int(elements.count_nonzero()) / max(1, elements.numel())


def _updated_instead(compared: ComparedOutput) -> str:
    """Where one of every few elements is never updated and one beside it is wrong."""
    for period in PACKS:
        extent = compared.value.shape[-1] if compared.value.dim() else 0
        if extent < LEAST_PACKS * period:
            return ""
        left, wrong = (
            [
                phase
                for phase in range(period)
                if _share_of(elements[..., phase::period]) > MOST_OF_A_PHASE
            ]
            for elements in (compared.unwritten, compared.wrong)
        )
        if len(left) == len(wrong) == 1:
            return (
                f"; of every {period} along {compared.axes[-1]} element {left[0]} is never updated"
                f" and element {wrong[0]} is wrong instead, updated twice or in its place, as where"
                " one component of a vector is named for another"
            )
    return ""


def _exchanged_grid(compared: ComparedOutput) -> str:
    """A guess where one of the last two axes is written only as far as the other one reaches."""
    if compared.value.dim() < 2:
        return ""
    rows, columns = compared.value.shape[-2:]
    written = (~compared.unwritten).reshape(-1, rows, columns).any(0)
    for number, (reached, extent, other) in enumerate(
        ((written.any(1), rows, columns), (written.any(0), columns, rows))
    ):
        if int(reached.sum()) == other < extent and bool(reached[:other].all()):
            own, others = compared.axes[-2:] if number == 0 else compared.axes[-2:][::-1]
            return (
                f": {own} is covered only as far as {others} reaches ({other}), as where the axes"
                " of the grid, x and y, rows and columns of blocks, are swapped"
            )
    return ""


def _empty_groups(compared: ComparedOutput, inputs: Tensors) -> str:
    """Where the rows that are not written are those whose range of offsets is empty."""
    if compared.value.dim() < 1:
        return ""
    rows = compared.unwritten.flatten(1).any(-1) if compared.value.dim() > 1 else compared.unwritten
    for name, given in inputs.items():
        if given.dim() != 1 or given.is_floating_point() or len(given) != len(rows) + 1:
            continue
        if bool((given.long().diff() == 0).eq(rows).all()):
            return f"; these are the empty ones (bags, groups), whose {name} do not differ"
    return ""


def _missing_tile(region: ErrorRegion) -> str:
    """A guess where what is left is one tile in the midst, or in the corner, of two axes."""
    if len(region.parts) < 2 or region.density < 1:
        return ""
    if not all(part.kind in ("one", "first", "last", "range") for part in region.parts[-2:]):
        return ""
    return (
        ": a whole tile that no block computes, as where the order or grouping of blocks maps none"
        " to it, or maps one to a tile that does not exist"
    )


def constant_leads(compared: ComparedOutput) -> list[Lead]:
    """Wrong elements that all hold one value."""
    sample = compared.value.flatten()[sampled(compared.wrong)]
    some = sample[sample.isfinite()]
    if sample.numel() < 2:
        return []
    if some.numel() and float((sample == some.median()).double().mean()) < 0.4:
        return []  # of a sample, which is much quicker where an output has millions of elements
    values = compared.value[compared.wrong]
    if not bool(values.isfinite().any()):
        return []
    usual = float(values[values.isfinite()].median())
    share = float((values == usual).double().mean())
    if share < 0.5 or (usual and values.numel() < LEAST_ELEMENTS):
        return []
    shown = "zero" if usual == 0 else figure(usual)
    return [
        Lead(
            DiagnosisKind.constant,
            f"{_share(share)} wrong elements of {compared.name} hold {shown}.",
            share * float(compared.wrong.sum()) / float(compared.bad.sum()),
            1.2,
            {"value": usual},
        )
    ]


def infinite_leads(compared: ComparedOutput, hints: Sequence[int]) -> list[Lead]:
    """NaN and infinities where a finite number is expected, and values at the end of the dtype."""
    bad = int(compared.bad.sum())
    leads = []
    words, evidence = not_finite_words(compared, hints)
    if words:
        count = int(_not_finite(compared).sum())
        leads.append(Lead(DiagnosisKind.not_finite, words, count / bad, 0.85, evidence))
    if compared.dtype.is_floating_point:
        most = torch.finfo(compared.dtype).max
        ends = compared.wrong & (compared.value.abs() == most)
        count = int(ends.sum())
        if count:
            leads.append(
                Lead(
                    DiagnosisKind.overflow,
                    f"{count} elements of {compared.name} are at the largest number of its type:"
                    " clamped, or poison that was copied.",
                    count / bad,
                    0.8,
                    {"elements": count},
                )
            )
    return leads


def not_finite_words(
    compared: ComparedOutput, hints: Sequence[int]
) -> tuple[str, dict[str, JsonValue]]:
    """How many elements are NaN or infinite where a finite number is expected, where they are, and
    the evidence; "" if none are.
    """
    strange = _not_finite(compared)
    count = int(strange.sum())
    if not count:
        return "", {}
    nan = int((strange & compared.value.isnan()).sum())
    region = error_region(strange, compared.axes, hints)
    what = "NaN" if nan == count else "infinite" if nan == 0 else "NaN or infinite"
    words = (
        f"{count} elements of {compared.name} are {what} where finite values are expected:"
        f" {region.words}."
    )
    return words, {"nan": nan, "infinite": count - nan, **region.evidence}


def _not_finite(compared: ComparedOutput) -> torch.Tensor:
    return compared.wrong & ~compared.value.isfinite() & compared.reference.isfinite()


def rounded_leads(compared: ComparedOutput) -> list[Lead]:
    """All values are numbers of a narrower type than the output's."""
    if compared.dtype not in NARROWER:
        return []
    compared, _ = compared.thinned()
    finite = compared.value[compared.value.isfinite() & (compared.value != 0)]
    if finite.numel() < LEAST_ELEMENTS or finite.unique().numel() < LEAST_ELEMENTS // 2:
        return []
    for name, narrow in NARROWER.get(compared.dtype, ()):
        share = float((finite.float().to(narrow).double() == finite).double().mean())
        if share < 0.999:
            continue
        expected = compared.reference[compared.reference.isfinite()].to(compared.dtype).float()
        if float((expected.to(narrow).float() == expected).double().mean()) > 0.5:
            continue  # the right values are, too
        own = str(compared.dtype).removeprefix("torch.")
        return [
            Lead(
                DiagnosisKind.low_precision,
                f"Every value of {compared.name} is a number of {name}, though it is written as"
                f" {own}: it was rounded to {name} on its way.",
                _small_error_share(compared, narrow),
                1.0,
                {"rounded_to": name},
            )
        ]
    return []


def _small_error_share(compared: ComparedOutput, narrow: torch.dtype) -> float:
    """The share of wrong elements whose error is no larger than that of the narrow type."""
    step = torch.finfo(narrow).eps
    error = (compared.value - compared.reference).abs()[compared.wrong]
    allowed = 2 * step * compared.reference.abs()[compared.wrong] + compared.gate.atol
    return float((error <= allowed).double().mean()) if error.numel() else 0.0


def _share(share: float) -> str:
    return "All" if share > 0.999 else f"{share:.0%} of the"
