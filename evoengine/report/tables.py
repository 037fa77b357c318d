"""Tables of rows, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from evoengine.records import Environment, Status
from evoengine.report import figures
from evoengine.report.rows import CaseRow, CompiledRow, EliteRow, Finding, ResourceRow, RunRows, TrialDetail, TrialRow, VerdictRow

STYLES = {Status.correct: "green", Status.wrong_result: "yellow", Status.unstable: "yellow", Status.rejected: "dim"}  # all others: red


def status_style(status: Status) -> str:
    """The colour of a status."""
    return STYLES.get(status, "red")


def _table(*columns: str, title: str | None = None) -> Table:
    """A table whose columns beginning with > hold figures, and with ~ give way when there is no room."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1), pad_edge=False, title_style="bold")
    for column in columns:
        name = column.lstrip(">~")
        elastic = "~" in column[:2]
        table.add_column(
            name,
            justify="right" if ">" in column[:2] else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=None,
            min_width=4 if elastic else len(name),
        )
    return table


def elites_table(rows: Sequence[EliteRow], title: str | None = "elites") -> RenderableType:
    """The holders of places: tier, place, trial, name, tunables, speed-up with interval, latency, registers."""
    if not rows:
        return Text("no elites yet: no correct kernel has a time", style="dim")
    table = _table("tier", ">#", ">trial", "~name", "~tunables", "speed-up", ">us", ">regs", title=title)
    for row in rows:
        table.add_row(
            row.tier,
            str(row.place),
            str(row.trial),
            escape(row.name),
            escape(figures.tunables(row.tunables)),
            figures.speedup(row.speedup),
            figures.micros(row.latency_us),
            "-" if row.registers is None else f"{row.registers}{'!' if row.keeps_target is False else ''}",
            style="bold" if row.place == 1 else None,
        )
    return table


def trials_table(rows: Iterable[TrialRow]) -> Table:
    """One line for each trial."""
    table = _table(">trial", "operator", "~name", "~tunables", "status", "tier", ">speed-up", ">us", ">#", "~reason", title="trials")
    for row in rows:
        table.add_row(
            str(row.trial),
            escape(row.operator),
            escape(row.name),
            escape(figures.tunables(row.tunables)),
            Text(row.status.value, style=status_style(row.status)),
            escape(row.tier),
            f"{row.speedup.value:.3f}x" if row.speedup else "-",
            figures.micros(row.latency_us),
            "" if row.place is None else str(row.place),
            "" if row.status is Status.correct else escape(row.reason),
        )
    return table


def run_report(rows: RunRows, last: int | None = None) -> RenderableType:
    """The run's head, its elites, and its trials: the last so many of them (None: all)."""
    shown = rows.trials if last is None else rows.trials[max(0, len(rows.trials) - last) :]
    parts: list[RenderableType] = [run_head(rows), "", elites_table(rows.elites)]
    if any(row.keeps_target is False for row in rows.elites):
        parts.append(Text("! exceeds a limit of the task's target", style="dim"))
    parts.append(trials_table(shown))
    if len(shown) < len(rows.trials):
        parts.append(Text(f"{len(rows.trials) - len(shown)} earlier trials are not shown; --all shows them", style="dim"))
    return Group(*parts)


def run_head(rows: RunRows) -> Table:
    """What the run is, in a few lines."""
    facts = {
        "run": f"{rows.name}  ({rows.folder})",
        "task": rows.task,
        "device": rows.device,
        "generator": rows.generator,
        "trials": f"{rows.settled} of {rows.budget} settled" + (f", {rows.ended}" if rows.ended else ""),
        "counts": counts_line(rows.counts),
        "baselines": ", ".join(f"{case}: {name}" for case, name in rows.baselines.items()) or "-",
    }
    if rows.usage.prompt_tokens or rows.usage.completion_tokens:
        facts["spent"] = figures.usage(rows.usage)
    return facts_grid(facts)


def facts_grid(facts: dict[str, str]) -> Table:
    """Names on the left, what they are on the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, escape(value))
    return grid


def counts_line(counts: dict[str, int]) -> str:
    """`12 correct, 3 wrong_result`."""
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "none"


def verdict_report(row: VerdictRow) -> RenderableType:
    """One verdict whole: status, errors of every case, times, resources, environment."""
    parts: list[RenderableType] = [_verdict_head(row)]
    if any(case.ok is not None for case in row.cases):
        parts.append(checks_table(row.cases))
    if any(case.hot_us for case in row.cases):
        parts.append(timings_table(row.cases))
    if row.resources:
        parts.append(resources_table(row.resources))
    if row.target_exceeds:
        parts.append(Text("\n".join(f"over the target: {item}" for item in row.target_exceeds), style="yellow"))
    if row.detail:
        parts.append(Group(Text("detail", style="bold"), Text(row.detail.rstrip())))
    return Group(*parts)


def _verdict_head(row: VerdictRow) -> Table:
    facts = {
        "kernel": row.name,
        "status": row.status.value,
        "reason": row.reason,
        "tier": row.tier or "-",
        "tunables": figures.tunables(row.tunables),
    }
    if row.speedup:
        facts["speed-up"] = f"{figures.speedup(row.speedup)}  ({figures.micros_interval(row.latency_us)} us a call)"
    if row.phases_s:
        facts["took"] = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in row.phases_s.items())
    if row.environment:
        facts["device"] = _environment(row.environment)
    return facts_grid(facts)


def _environment(found: Environment) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return f"{found.device} ({found.arch}); {versions}"


def checks_table(rows: Iterable[CaseRow]) -> Table:
    """The worst input set of every case against its limits."""
    table = _table(
        "~case",
        "ok",
        ">sets",
        ">max abs",
        ">allowed",
        ">rel RMSE",
        ">allowed",
        ">failing",
        "~worst set",
        "~at",
        title="checks (worst input set of each case)",
    )
    for row in rows:
        if row.ok is None:
            continue
        table.add_row(
            f"{row.case}{' (hidden)' if row.hidden else ''}",
            Text("yes", style="green") if row.ok else Text("NO", style="red"),
            f"{row.input_sets - row.failing_sets}/{row.input_sets}",
            figures.error(row.max_abs),
            figures.error(row.limit_abs),
            figures.error(row.rel_rmse),
            figures.error(row.limit_rel_rmse),
            f"{row.failing_share or 0.0:.2%}" + (f", {row.nan_count} NaN" if row.nan_count else ""),
            row.worst_set,
            escape(row.worst_at),
        )
    return table


def timings_table(rows: Iterable[CaseRow]) -> Table:
    """Times of every timed case beside its baseline, hot and with a flushed L2."""
    table = _table(
        "~case",
        "baseline",
        "hot us",
        ">baseline us",
        "speed-up",
        ">cold us",
        ">baseline us",
        "speed-up",
        title="times per call (median with its 95 % interval)",
    )
    for row in rows:
        if row.hot_us:
            table.add_row(
                row.case,
                escape(row.baseline),
                escape(figures.micros_interval(row.hot_us)),
                figures.micros(row.hot_baseline_us),
                escape(figures.speedup(row.hot_speedup)),
                figures.micros(row.cold_us),
                figures.micros(row.cold_baseline_us),
                escape(figures.speedup(row.cold_speedup)),
            )
    return table


def resources_table(rows: Iterable[ResourceRow]) -> Table:
    """What each compiled kernel takes of the device."""
    table = _table(
        "~kernel", "arch", ">registers", ">shared static", ">dynamic", ">local", ">spills", "against the target", title="resources"
    )
    for row in rows:
        table.add_row(escape(row.kernel), *resource_cells(row))
    return table


def resource_cells(row: ResourceRow) -> list[RenderableType]:
    """The cells from the architecture to the comparison with the target."""
    spills = row.spill_store_bytes + row.spill_load_bytes
    return [
        row.arch,
        str(row.registers),
        figures.size(row.static_shared_bytes),
        figures.size(row.dynamic_shared_bytes),
        figures.size(row.local_bytes),
        figures.size(spills),
        _against_target(row),
    ]


def _against_target(row: ResourceRow) -> Text:
    limits = []
    if row.target_registers is not None:
        limits.append(f"{row.registers}/{row.target_registers} registers")
    if row.target_shared_bytes is not None:
        limits.append(f"{figures.size(row.shared_bytes)}/{figures.size(row.target_shared_bytes)} shared")
    if not limits:
        return Text("-", style="dim")
    words = f"over in {', '.join(row.over)}: " if row.over else "within: "
    return Text(words + ", ".join(limits), style="yellow" if row.over else "green")


def compiled_table(rows: Iterable[CompiledRow]) -> RenderableType:
    """What can be said without a device: one line for each kernel function, and why others did not compile."""
    table = _table(
        "~file",
        "~kernel",
        "arch",
        ">registers",
        ">shared static",
        ">dynamic",
        ">local",
        ">spills",
        "against the target",
        title="compiled, not run",
    )
    notes: list[Text] = []
    for row in rows:
        if not row.compiled:
            notes.append(Text(f"{row.name}: {row.status}: {row.reason}", style="red"))
            continue
        for item in row.resources:
            table.add_row(escape(row.name), escape(item.kernel), *resource_cells(item))
        notes += [Text(f"{row.name}: over the target: {item}", style="yellow") for item in row.target_exceeds]
    return Group(table, *notes)


def trial_report(detail: TrialDetail) -> RenderableType:
    """One trial whole."""
    row = detail.row
    facts = {
        "trial": str(row.trial),
        "operator": f"{row.operator}" + (f" of trial {', '.join(map(str, row.parents))}" if row.parents else ""),
        "place": "-" if row.place is None else f"{row.place} of {row.tier}",
    }
    facts |= {name: text for name, text in (("insight", detail.insight), ("problem", detail.problem)) if text}
    if detail.replies:
        facts["replies"] = f"{detail.replies}, {figures.usage(detail.usage)}"
    if detail.first is not None:
        facts["first verdict"] = (
            f"{detail.first.status.value}, {figures.speedup(detail.first.speedup)}; below is the one of a fresh process"
        )
    return Group(facts_grid(facts), verdict_report(detail.verdict))


def tasks_table(rows: Iterable[dict[str, Any]]) -> Table:
    """The packaged tasks."""
    table = _table("task", "target", ">trials", "tiers", "~cases", "~summary")
    for row in rows:
        cells = [row["name"], row["target"] or "-", str(row["trials"]), ", ".join(row["tiers"]), ", ".join(row["cases"]), row["summary"]]
        table.add_row(*(escape(cell) for cell in cells))
    return table


def findings_table(rows: Iterable[Finding]) -> Table:
    """What `doctor` found, and what to do."""
    table = _table("what", "state")
    table.add_column("found", overflow="fold")
    table.add_column("what to do", overflow="fold")
    styles = {"ok": "green", "missing": "red", "absent": "yellow"}
    for row in rows:
        table.add_row(row.name, Text(row.state, style=styles[row.state]), escape(row.found), escape(row.remedy))
    return table
