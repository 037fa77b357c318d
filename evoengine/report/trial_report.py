"""One trial in full."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import RaceResult, Status
from evoengine.report import format
from evoengine.report.case_tables import activity_lines, timings_table
from evoengine.report.facts_grid import facts_grid, section
from evoengine.report.rows import RaceFigures, TrialDetail, VerdictFigures
from evoengine.report.search_remark import STOPPED_EARLY
from evoengine.report.verdict_report import verdict_report


def trial_report(detail: TrialDetail) -> RenderableType:
    """One trial in full."""
    row = detail.row
    facts = {
        "trial": str(row.trial),
        "operator": (
            row.operator + (f" of trial {', '.join(map(str, row.parents))}" if row.parents else "")
        ),
        "place": "-" if row.place is None else f"{row.place} of {row.tier}",
    }
    if detail.began:
        facts["begun"], facts["judged"] = detail.began, detail.ended
    facts |= {
        name: text
        for name, text in (("insight", detail.insight), ("problem", detail.problem))
        if text
    }
    if detail.replies:
        facts["replies"] = f"{detail.replies}, {format.usage(detail.usage, detail.cost_known)}"
    if detail.first is not None:
        early = f" ({STOPPED_EARLY})" if detail.first.is_coarse else ""
        facts["first verdict"] = (
            f"{_found(detail.first)}{early}; the verdict below is its verification"
        )
    if detail.final is not None or detail.awaits_final:
        facts["final verdict"] = _final(detail.final)
    races = (Text(format.printable(race_line(race))) for race in detail.races)
    return Group(
        facts_grid(facts), *races, verdict_report(detail.verdict), *_final_times(detail.final)
    )


def race_line(race: RaceFigures) -> str:
    """`race against trial 12: won, 0.981 [0.975, 0.987] of its time`."""
    words = race.result.value
    if race.ratio is not None and race.result is not RaceResult.void:
        words += f", {format.share(race.ratio)} of its time"
    if race.result is not RaceResult.won:
        words += f": {race.reason}"
    return f"race against trial {race.holder_trial}: {words}"


def _found(verdict: VerdictFigures) -> str:
    """The status and the time of a verdict."""
    time = (
        f"modelled {format.micros(verdict.latency_us)} us"
        if verdict.modelled
        else format.speedup(verdict.speedup)
    )
    return f"{verdict.status.value}, {time}"


def _final_times(verdict: VerdictFigures | None) -> list[RenderableType]:
    """The times and the kernel activity of every case at the end of the run, with the GPU's state,
    where it was measured then.
    """
    if verdict is None or not any(case.hot_us for case in verdict.cases):
        return []
    parts: list[RenderableType] = [Text("measured once more at the end of the run", style="bold")]
    if verdict.gpu_state:
        parts.append(facts_grid({"GPU": format.gpu_state(verdict.gpu_state)}))
    parts.append(timings_table(verdict.cases))
    if found := activity_lines(verdict):
        parts.append(section(Group(*found)))
    return [section(Group(*parts))]


def _final(verdict: VerdictFigures | None) -> str:
    if verdict is None:
        return "not measured at the end of the run yet"
    if verdict.status is not Status.correct:
        return f"{verdict.status.value} at the end of the run: {verdict.reason}"
    return (
        f"{_found(verdict)} ({format.micros_interval(verdict.latency_us)} us per call), measured"
        " once more at the end of the run, which decided nothing"
    )
