"""One verdict in full."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evoengine.records import DiagnosisKind, Environment, Forensics, Status
from evoengine.report import format
from evoengine.report.case_tables import (
    activity_lines,
    checked_mode_table,
    checks_table,
    modelled_table,
    shown_bounds,
    timings_table,
)
from evoengine.report.facts_grid import facts_grid, section
from evoengine.report.forensics_section import forensics_section
from evoengine.report.resource_tables import machine_code_lines, over_target, resources_table
from evoengine.report.rows import VerdictFigures
from evoengine.report.search_remark import STOPPED_EARLY
from evoengine.report.table_notes import COMBINATION, MODELLED, bound_notes, latency_notes


def _beside_reason(row: VerdictFigures) -> Forensics | None:
    """What was found out beside what the reason has: of a fault the change that mends it."""
    if row.forensics is None or row.status is not Status.fault:
        return row.forensics
    others = [one for one in row.forensics.diagnoses if one.kind is not DiagnosisKind.fault]
    return row.forensics.model_copy(update={"diagnoses": tuple(others)}) if others else None


def verdict_report(row: VerdictFigures) -> RenderableType:
    """One verdict in full: status, errors of every case, times, resources, environment."""
    parts: list[RenderableType] = [_verdict_head(row)]
    if any(case.input_sets for case in row.cases):
        parts.append(section(checks_table(row.cases)))
    if (found_out := _beside_reason(row)) is not None:
        parts.append(section(forensics_section(found_out)))
    if any(case.checked_for for case in row.cases):
        parts.append(section(checked_mode_table(row.cases)))
    if any(case.hot_us for case in row.cases):
        parts.append(section(timings_table(row.cases)))
    if found := activity_lines(row):
        parts.append(section(Group(*found)))
    if any(case.modelled_us for case in row.cases):
        parts.append(section(modelled_table(row.cases)))
        if spent := latency_notes({case.case: case.latency_shares for case in row.cases}):
            parts.append(Text(spent))
        parts.append(Text(COMBINATION, style="dim"))
        shown = (name for case in row.cases for name in shown_bounds(case))
        parts.append(Text(bound_notes(shown), style="dim"))
    if row.resources:
        parts.append(section(resources_table(row.resources)))
    if lines := machine_code_lines(row.resources):
        parts.append(section(Group(*lines)))
    parts += over_target(row.resources, row.target_exceeds)
    if row.detail:
        parts.append(
            section(
                Group(Text("detail", style="bold"), Text(format.printable(row.detail.rstrip())))
            )
        )
    return Group(*parts)


def _verdict_head(row: VerdictFigures) -> Table:
    facts = {
        "kernel": row.name,
        "status": row.status.value,
        "reason": row.reason,
        "tier": row.tier or "-",
        "tunables": format.tunables(row.tunables),
    }
    if row.speedup:
        facts["speed-up"] = (
            f"{format.speedup(row.speedup)}  ({format.micros_interval(row.latency_us)} us per call)"
        )
    if row.is_coarse:
        facts["timing"] = STOPPED_EARLY
    if row.modelled:
        facts["modelled time"] = f"{format.micros(row.latency_us)} us per call; {MODELLED}"
    if row.checked_problem:
        facts["checked mode"] = f"not on all cases: {row.checked_problem}"
    if row.phases_s:
        facts["took"] = ", ".join(
            f"{name} {seconds:.2f} s" for name, seconds in row.phases_s.items()
        )
    if row.environment:
        facts["device"] = _environment(row.environment)
    if row.gpu_state:
        facts["GPU"] = format.gpu_state(row.gpu_state)
    return facts_grid(facts)


def _environment(found: Environment) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return f"{found.device} ({found.arch}); {versions}"
