"""A small stored run: its description, its proposals, and verdicts drawn by rule."""

from __future__ import annotations

from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule, scripted_verdict
from evoengine.population.elites import Population
from evoengine.protocols import ProposalRow, ReplyRow, Store, VerdictRow
from evoengine.records import (
    Elite,
    InputSetCheck,
    Proposal,
    Reply,
    RunInfo,
    Status,
    Usage,
    Verdict,
    outcome_of,
)
from evoengine.task.schema import Task
from tests.scale_task import kernel


def input_set(ok: bool, max_abs: float, distribution: str = "normal") -> InputSetCheck:
    return InputSetCheck(
        distribution=distribution,
        seed=1,
        ok=ok,
        max_abs=max_abs,
        rel_rmse=max_abs / 10,
        failing_share=0.0 if ok else 0.25,
        worst_index=(3,),
        worst_output="y",
        limit_abs=1e-3,
        limit_rel_rmse=1e-3,
        trusted_max_abs=1e-7,
        trusted_rel_rmse=1e-8,
        nan_count=0 if max_abs == max_abs else 5,
    )


def run_info(task: Task, task_path: Path, name: str = "one", trials: int = 8) -> RunInfo:
    return RunInfo(
        name=name,
        task_path=str(task_path),
        config={
            "task": str(task_path),
            "trials": trials,
            "generator": "tune",
            "kernels": ["a", "b"],
        },
        task=task.model_dump(mode="json"),
        environment=SCRIPTED_GPU.model_dump(mode="json"),
        baselines={"small": "torch.mul", "large": "torch.mul"},
        created="2025-11-21T03:00:00+00:00",
        version="0.1.0",
    )


def verdict_of(proposal: Proposal, task: Task, verify: bool = False) -> Verdict:
    assert proposal.source is not None
    candidate = kernel_file.parse(proposal.source).tuned(proposal.tunables)
    return scripted_verdict(candidate, task, SCRIPTED_GPU, VerdictRule(), verify)


def fill(store: Store, info: RunInfo, proposals: list[Proposal]) -> tuple[Elite, ...]:
    """Stores `info` and a settled trial for each proposal, as an engine would; the elites after
    them.
    """
    store.append(info)
    population, task = Population(), Task.model_validate(info.task)
    for trial, proposal in enumerate(proposals):
        store.append(ProposalRow(trial, proposal))
        if proposal.operator == "mutate":
            usage = Usage(prompt_tokens=100, completion_tokens=50, cost_usd=0.01)
            store.append(
                ReplyRow(
                    trial, 0, Reply(model="m", prompt="what?", text="this \ud800 one", usage=usage)
                )
            )
        if proposal.source is None:
            verdict = Verdict(status=Status.rejected, reason=proposal.problem)
        else:
            verdict = verdict_of(proposal, task)
        store.append(VerdictRow(trial, 0, verdict))
        first, again = outcome_of(trial, proposal, verdict), None
        if population.would_take_place(first):
            second = verdict_of(proposal, task, verify=True)
            store.append(VerdictRow(trial, 1, second))
            again = outcome_of(trial, proposal, second)
        population.add(first, again)
    return population.elites


def proposals() -> list[Proposal]:
    """Two seeds, tuned descendants of both, one reply without a kernel, one of a model with a
    hostile name.
    """
    made = [
        Proposal(operator="seed", source=kernel("scale_a"), label="scale_a"),
        Proposal(operator="seed", source=kernel("scale_b", "fp16"), label="scale_b"),
    ]
    made += [
        Proposal(
            operator="tune",
            source=kernel("scale_a"),
            parents=(0,),
            tunables={"BLOCK": block, "UNROLL": 1},
            label="scale_a",
        )
        for block in (64, 32, 256)
    ]
    made.append(
        Proposal(operator="mutate", parents=(2,), source=None, problem="the reply holds no kernel")
    )
    made.append(
        Proposal(
            operator="mutate",
            parents=(2, 3),
            source=kernel("better"),
            label="\x1b[2J[red]better",
            insight="wider loads",
        )
    )
    return made
