"""One trial in full."""

from __future__ import annotations

from rich.console import Group, RenderableType

from evoengine.report import format
from evoengine.report.facts_grid import facts_grid
from evoengine.report.rows import TrialDetail
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
        time = (
            f"modelled {format.micros(detail.first.latency_us)} us"
            if detail.first.modelled
            else format.speedup(detail.first.speedup)
        )
        found = f"{detail.first.status.value}, {time}"
        facts["first verdict"] = f"{found}; the verdict below is its verification"
    return Group(facts_grid(facts), verdict_report(detail.verdict))
