"""A small task with kernels, and an executor whose verdicts follow from the candidate alone: no
compiler, no device.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.population.elites import Population
from evoengine.protocols import ExecutorStart, Progress, ProposalRow, ReplyRow, Store, VerdictRow
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    CheckedRun,
    Elite,
    Environment,
    InputSetCheck,
    KernelResources,
    LaunchModel,
    Proposal,
    Reply,
    RunInfo,
    Samples,
    Status,
    Usage,
    Verdict,
    outcome_of,
)
from evoengine.statistics import exact, latency_interval, ratio_interval
from evoengine.task.load import load_task
from evoengine.task.schema import Task

TASK = """\
name: scale
reference: scale.py:forward
dims: {N: int}
inputs:
  x: {shape: [N], dtype: float32}
outputs:
  y: {shape: [N], dtype: float32}
cases:
  small: {N: 1024}
  large: {N: 65536}
hidden_cases:
  odd: {N: 77}
tiers:
  fp32: {atol: 1e-6, rel_rmse: 1e-6}
  fp16: {atol: 1e-3, rel_rmse: 1e-3}
objective: {cases: [large]}
baselines: {torch.mul: scale.py:forward}
target: {arch: sm_89, registers: 72, shared: 99KiB}
seeds_from: [scale_a.cu, scale_b.cu]
budget: {trials: 8}
"""

KERNEL = """\
/* evoengine
name: NAME
precision: TIER
tunables:
  BLOCK: [128, 64, 32, 256]   # threads
  UNROLL: [4, 2, 1]
launches:
  - kernel: scale
    grid: ["ceil_div(N, BLOCK)"]
    block: [BLOCK]
    args: [x, y, N]
*/
// NAME
extern "C" __global__ void scale(const float* x, float* y, long long n) { y[0] = 2 * x[0]; }
"""

ENVIRONMENT = Environment(
    device="cuda:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=227 * 1024,
    l2_bytes=1,
    memory_bytes=1,
    versions={"driver": "13.0", "torch": "2.11"},
)


def kernel(name: str, tier: str = "fp32") -> str:
    return KERNEL.replace("NAME", name).replace("TIER", tier)


def write_task(folder: Path) -> Path:
    """The path of the task file, with its reference and its two kernels beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.py").write_text("def forward(x):\n    return 2 * x\n")
    (folder / "scale_a.cu").write_text(kernel("scale_a"))
    (folder / "scale_b.cu").write_text(kernel("scale_b", "fp16"))
    (folder / "scale.yaml").write_text(TASK)
    return folder / "scale.yaml"


def the_task(folder: Path) -> Task:
    return load_task(write_task(folder))


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


def verdict_of(parsed: Candidate, verify: bool = False) -> Verdict:
    """The same for the same candidate: fast, slow, or wrong by its digest."""
    luck = random.Random(derived_seed(parsed.digest))  # noqa: S311 - reproducible on purpose
    us = luck.uniform(5.0, 20.0)
    wrong = luck.random() < 0.2
    if verify:
        us *= 1.001
    samples = [us * (1 + 0.002 * luck.random()) for _ in range(20)]
    race = Samples(
        candidate_calls=10, baseline_calls=10, candidate_us=tuple(samples), baseline_us=(12.0,) * 20
    )
    checks = tuple(
        CaseCheck(
            case=case,
            hidden=case == "odd",
            ok=not wrong,
            sets=(
                input_set(True, 1e-5),
                input_set(not wrong, float("nan") if wrong else 2e-5, "wide"),
            ),
        )
        for case in ("small", "large", "odd")
    )
    resources = tuple(
        KernelResources(
            kernel="scale",
            arch=arch,
            registers=registers,
            static_shared_bytes=128,
            dynamic_shared_bytes=4096,
            local_bytes=0,
            spill_store_bytes=0,
            spill_load_bytes=0,
        )
        for arch, registers in (("sm_90", 40), ("sm_89", 80))
    )
    common = {
        "tier": parsed.plan.precision,
        "resources": resources,
        "code_digest": parsed.digest,
        "environment": ENVIRONMENT,
    }
    common |= {
        "target_exceeds": ("scale: 80 registers on sm_89, target 72",),
        "phases_s": {"compile": 0.1, "total": 0.5},
    }
    if wrong:
        reason = "case small: 1 of 2 input sets fail"
        return Verdict(status=Status.wrong_result, reason=reason, checks=checks[:1], **common)
    timing = CaseTiming(case="large", baseline="torch.mul", hot=race, cold=race)
    return Verdict(
        status=Status.correct,
        reason="correct on every case",
        checks=checks,
        timings=(timing,),
        score=ratio_interval(timing),
        latency_us=latency_interval(timing),
        **common,
    )


def modelled_verdict_of(parsed: Candidate, verify: bool = False) -> Verdict:
    """The same as an emulator would find it: modelled times, and blocks that checked mode
    followed.
    """
    found = verdict_of(parsed)
    checked = CheckedRun(checks=("races", "bounds"), blocks=8, total_blocks=32)
    checks = tuple(
        check.model_copy(update={"checked": None if verify else checked}) for check in found.checks
    )
    changes: dict[str, object] = {
        "environment": EMULATOR,
        "timings": (),
        "checks": checks,
        "score": None,
        "latency_us": None,
    }
    if found.status is Status.correct and found.latency_us:
        us = found.latency_us.value
        launch = LaunchModel(
            kernel="scale", us=us, limiter="tensor", bounds_us={"shared": us / 3, "tensor": us / 2}
        )
        changes |= {
            "modelled": (CaseModel(case="large", target="l4", launches=(launch,)),),
            "score": exact(us),
            "latency_us": exact(us),
        }
    return found.model_copy(update=changes)


class ScriptedExecutor:
    """A protocols.Executor that asks nobody."""

    def __init__(self, delay_s: float = 0.0, modelled: bool = False) -> None:
        self.delay_s = delay_s
        self.modelled = modelled

    async def start(self) -> ExecutorStart:
        await asyncio.sleep(float(os.environ.get("SCRIPTED_START_S", "0")))
        if self.modelled:
            return ExecutorStart(environment=EMULATOR)
        return ExecutorStart(
            environment=ENVIRONMENT,
            baselines={"small": "torch.mul", "large": "torch.mul"},
            baseline_us={
                case: {"torch.other": 13.5, "torch.mul": 12.0} for case in ("small", "large")
            },
            baseline_problems={"torch.broken": "no kernel image"},
        )

    async def evaluate(
        self, candidate: Candidate, progress: Progress, verify: bool = False
    ) -> Verdict:
        progress("checking small")
        await asyncio.sleep(self.delay_s)
        return (
            modelled_verdict_of(candidate, verify)
            if self.modelled
            else verdict_of(candidate, verify)
        )

    async def close(self) -> None:
        """Nothing is open."""


EMULATOR = ENVIRONMENT.model_copy(
    update={
        "device": "emulator:l4 NVIDIA L4 (modelled on 2 cores)",
        "kind": "emulator",
        "arch": "sm_90",
        "versions": {"clang": "22.1.8", "nvrtc": "13.0"},
    }
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
        environment=ENVIRONMENT.model_dump(mode="json"),
        baselines={"small": "torch.mul", "large": "torch.mul"},
        created="2025-11-21T03:00:00+00:00",
        version="0.1.0",
    )


def fill(store: Store, info: RunInfo, proposals: list[Proposal]) -> tuple[Elite, ...]:
    """Stores `info` and a settled trial for each proposal, as an engine would; the elites after
    them.
    """
    store.append(info)
    population = Population()
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
            verdict = verdict_of(kernel_file.parse(proposal.source).tuned(proposal.tunables))
        store.append(VerdictRow(trial, 0, verdict))
        first, again = outcome_of(trial, proposal, verdict), None
        if population.would_take_place(first):
            assert proposal.source is not None
            second = verdict_of(
                kernel_file.parse(proposal.source).tuned(proposal.tunables), verify=True
            )
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
