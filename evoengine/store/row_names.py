"""The names of stored rows in messages."""

from __future__ import annotations

from evoengine.protocols import (
    ChangeRow,
    EndRow,
    FailureRow,
    ProposalRow,
    RaceRow,
    ReplyRow,
    RequestRow,
    Row,
)
from evoengine.records import RunInfo


def name_of(row: Row) -> str:
    """How a message names `row`."""
    if isinstance(row, RunInfo):
        return "the run's description"
    if isinstance(row, ReplyRow):
        return f"reply {row.turn} of trial {row.trial}"
    if isinstance(row, ProposalRow):
        return f"the proposal of trial {row.trial}"
    if isinstance(row, RequestRow):
        return f"request {row.number} of trial {row.trial}"
    if isinstance(row, FailureRow):
        return f"the failure of request {row.number} of trial {row.trial}"
    if isinstance(row, RaceRow):
        return f"race {row.number} of trial {row.trial}"
    if isinstance(row, ChangeRow):
        return f"change {row.number} of the settings"
    if isinstance(row, EndRow):
        return f"end {row.number} of the run"
    return f"verdict {row.part} of trial {row.trial}"
