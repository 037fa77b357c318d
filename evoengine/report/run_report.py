"""A run: its summary, its elites and its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evoengine.records import TIMING_VERSION, Unanswered
from evoengine.report import format
from evoengine.report.elites_table import elites_table
from evoengine.report.facts_grid import facts_grid, section
from evoengine.report.rows import RunRows
from evoengine.report.table_notes import CHANGED, MODELLED, OF_THE_SEARCH
from evoengine.report.trials_table import trials_table

MOST_FINDINGS = 3  # of an audit; the JSON has all


def run_report(rows: RunRows, last: int | None = None) -> RenderableType:
    """The summary of a run, its elites, and its `last` trials (None: all of them)."""
    shown = rows.trials if last is None else rows.trials[max(0, len(rows.trials) - last) :]
    parts: list[RenderableType] = [
        run_head(rows),
        section(elites_table(rows.elites, with_notes=False)),
        section(trials_table(shown)),
    ]
    if any(row.tunables for row in shown):
        parts.append(Text(CHANGED, style="dim"))
    if any(row.final_status for row in rows.elites):
        parts.append(Text(OF_THE_SEARCH, style="dim"))
    if len(shown) < len(rows.trials):
        parts.append(
            Text(
                f"{len(rows.trials) - len(shown)} earlier trials are not shown; --all shows them",
                style="dim",
            )
        )
    return Group(*parts)


def run_head(rows: RunRows) -> Table:
    """The summary of a run in a few lines."""
    facts = {
        "run": f"{rows.name}  ({rows.folder})",
        "begun": f"{rows.created} by evoengine {rows.version}{_timing(rows)}",
        "task": rows.task,
        "device": rows.device,
        "generator": f"{rows.generator}, model {rows.model}" if rows.model else rows.generator,
        **({"method": rows.method} if rows.method else {}),
        **({"tiers": _tiers(rows.tier_shares)} if rows.tier_shares else {}),
        "trials": (
            f"{rows.settled} of {rows.budget} settled" + (f"; {rows.ended}" if rows.ended else "")
        ),
        **({"tuned": f"{rows.tuned} of {rows.settled} trials"} if rows.tune_share else {}),
        "counts": ", ".join(f"{count} {status}" for status, count in rows.counts.items()) or "none",
        "baselines": (
            "; ".join(_baselines(rows, case) for case in rows.baselines)
            or (f"none: {MODELLED}" if rows.modelled else "-")
        ),
    }
    if rows.usage.prompt_tokens or rows.usage.completion_tokens:
        facts["spent"] = format.usage(rows.usage, rows.cost_known)
    if rows.unanswered.requests:
        facts["unanswered"] = _unanswered(rows.unanswered)
    if rows.changes:
        facts["changed"] = "; ".join(rows.changes)
    if rows.audit_findings:
        facts["audit"] = _audit(rows.audit_findings)
    if rows.baseline_problems:
        facts["left out"] = "; ".join(
            f"{name}: {problem}" for name, problem in rows.baseline_problems.items()
        )
    return facts_grid(facts)


def _tiers(shares: Mapping[str, float]) -> str:
    """Each tier with its share in per cent."""
    return ", ".join(f"{tier} {100 * share:.3g} %" for tier, share in shares.items())


def _timing(rows: RunRows) -> str:
    """The run's version of the timing, if it is not this one."""
    if rows.timing_version == TIMING_VERSION:
        return ""
    return f", timing version {rows.timing_version}: cannot be resumed by this evoengine"


def _unanswered(found: Unanswered) -> str:
    cost = f", for up to {found.most_usd:.4f} USD" if found.most_usd else ""
    return (
        f"{found.requests} requests without a reply may have been paid for{cost} (including those"
        " under way)"
    )


def _audit(findings: Sequence[str]) -> str:
    """What the task of a run lets through."""
    left = len(findings) - MOST_FINDINGS
    more = f"; and {left} more: `evoengine audit` lists them" if left > 0 else ""
    shown = "; ".join(findings[:MOST_FINDINGS])
    return f"the task lets wrong outputs through: {shown}{more}"


def _baselines(rows: RunRows, case: str) -> str:
    """The baselines of a case with their times, the fastest first."""
    times = sorted(rows.baseline_us.get(case, {}).items(), key=lambda item: item[1])
    return (
        f"{case}: {', '.join(f'{name} {us:.4g} us' for name, us in times) or rows.baselines[case]}"
    )
