"""Rows as a run writes them, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace

from evoengine.protocols import (
    FIRST,
    ChangeRow,
    EndRow,
    FailureRow,
    ProposalRow,
    RaceRow,
    ReplyRow,
    RequestRow,
    VerdictRow,
)
from evoengine.records import (
    CaseCheck,
    CaseTiming,
    EndKind,
    InputSetCheck,
    Interval,
    Proposal,
    Race,
    RaceResult,
    RaceTiming,
    Reply,
    RunEnd,
    RunInfo,
    Samples,
    SettingsChange,
    Status,
    Usage,
    Verdict,
)

SOURCE = "/* evoengine\nname: kernel\n*/\n__global__ void kernel() {} // é\n"


def info(name: str = "demo") -> RunInfo:
    return RunInfo(
        name=name,
        task_path="/tasks/demo.yaml",
        config={"trials": 45, "seed": 7},
        task={"name": "demo"},
        environment=None,
        baselines={"mission": "torch.sdpa.cudnn"},
        created="2026-01-02T03:04:05Z",
        version="0.1.0",
    )


def reply(trial: int, turn: int = 0) -> ReplyRow:
    usage = Usage(prompt_tokens=100, completion_tokens=10 + trial, cost_usd=0.25)
    return ReplyRow(
        trial,
        turn,
        Reply(
            model="m",
            prompt=f"prompt {trial}",
            text=f"text {trial}.{turn} ≤ é",
            usage=usage,
            finish_reason="stop",
        ),
    )


def request(
    trial: int,
    number: int = 0,
    turn: int = 0,
    most_usd: float | None = 0.5,
    most_tokens: int | None = 900,
) -> RequestRow:
    return RequestRow(trial, number, turn, most_usd, most_tokens, "2026-01-02T03:04:05+00:00")


def failure(trial: int, number: int = 0, maybe_paid: bool = True) -> FailureRow:
    return FailureRow(trial, number, "the connection was cut", maybe_paid)


def end(number: int, kind: EndKind = EndKind.plateau) -> EndRow:
    ended = RunEnd(
        kind=kind,
        reason="no gain in the last 40 trials",
        settled=57 + number,
        changes=0,
        made="2026-01-02T03:04:05+00:00",
    )
    return EndRow(number, ended)


def change(number: int) -> ChangeRow:
    made = SettingsChange(
        made="2026-01-02T03:04:05+00:00",
        trial=7,
        config={"trials": 90 + number},
        words=(f"trials: 45 -> {90 + number}",),
    )
    return ChangeRow(number, made)


def proposal(trial: int, source: str | None = SOURCE) -> ProposalRow:
    return ProposalRow(
        trial,
        Proposal(
            operator="tune" if trial else "seed",
            parents=(0,) if trial else (),
            source=source,
            tunables={"BLOCK_M": 64, "WARPS": trial},
            problem="" if source else "no kernel in the reply",
            insight=f"WARPS -> {trial}",
            label="kernel",
        ),
    )


def race(
    trial: int, number: int = 0, holder: int = 0, result: RaceResult = RaceResult.won
) -> RaceRow:
    timing = RaceTiming(
        case="mission",
        baseline="torch.sdpa.cudnn",
        newcomer_us=(99.5, 99.25),
        holder_us=(100.5, 101.25),
        baseline_us=(99.0, 98.0),
        calls=(20, 7),
        groups=(0, 1),
    )
    return RaceRow(
        trial,
        number,
        holder,
        Race(
            result=result,
            reason=f"{result} against trial {holder}",
            ratio=Interval(value=0.985, low=0.98, high=float("inf")),
            newcomer=Interval(value=1.0, low=0.9, high=1.1),
            holder=None,
            timings=(timing,),
            phases_s={"timing": 0.5},
        ),
        "2026-01-02T03:04:07+00:00",
        "2026-01-02T03:04:08+00:00",
    )


def promising(row: VerdictRow, whether: bool = True) -> VerdictRow:
    """`row`, a first verdict, with what was decided of it."""
    assert row.part == FIRST
    return replace(row, promising=whether)


def verdict(trial: int, number: int = 0, status: Status = Status.correct) -> VerdictRow:
    scored = status is Status.correct
    score = Interval(value=1.0 + trial / 100, low=0.9, high=1.5 + trial)
    latency_us = Interval(value=100.0 + trial, low=99.0, high=130.5 + trial)
    samples = Samples(
        candidate_calls=20,
        baseline_calls=20,
        candidate_us=(100.5, 101.25),
        baseline_us=(99.5, 98.0),
    )
    return VerdictRow(
        trial,
        number,
        Verdict(
            status=status,
            reason=f"{status} in round {number}",
            tier="fp16",
            code_digest=f"code{trial}",
            score=score if scored else None,
            latency_us=latency_us if scored else None,
            checks=(CaseCheck(case="mission", hidden=False, ok=scored, sets=(_checked(scored),)),),
            timings=(
                CaseTiming(case="mission", baseline="torch.sdpa.cudnn", hot=samples, cold=None),
            )
            if scored
            else (),
            phases_s={"compile": 0.125},
        ),
    )


def _checked(ok: bool) -> InputSetCheck:
    """A wrong result has an infinite error here, for such values must survive the store."""
    return InputSetCheck(
        distribution="normal",
        seed=0,
        ok=ok,
        max_abs=0.001 if ok else float("inf"),
        rel_rmse=0.0005,
        failing_share=0.0,
        worst_index=(1, 2),
        worst_output="out",
        limit_abs=0.01,
        limit_rel_rmse=0.01,
        trusted_max_abs=0.002,
        trusted_rel_rmse=0.001,
    )
