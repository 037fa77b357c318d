"""A small task with hidden cases, evaluated kernels for it, and requests about it."""

from __future__ import annotations

from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.protocols import Evaluated, Request
from evoengine.records import (
    CaseCheck,
    Elite,
    Environment,
    InputSetCheck,
    Interval,
    KernelResources,
    MachineCode,
    Outcome,
    Proposal,
    Status,
    Verdict,
)
from evoengine.task.load import load_task

HIDDEN_SIZES = ("7919", "4243", "6007")  # primes that occur nowhere else
HIDDEN_NAMES = ("zq_ragged", "zq_tiny")

TASK = """\
name: row_sums
summary: sums of the rows of a matrix
reference: row_sums.py:forward
dims: {N: int, C: int, wide: bool}
inputs:
  x: {shape: [N, C], dtype: float32}
  eps: {value: 1/sqrt(C), dtype: float32}
outputs:
  out: {shape: [N], dtype: float32}
cases:
  main: {N: 64, C: 1024, wide: false}
  large: {N: 128, C: 8192, wide: true}
hidden_cases:
  zq_ragged: {N: 7919, C: 4243, wide: false}
  zq_tiny: {N: 1, C: 6007, wide: true}
tiers:
  fp32: {atol: 1e-4, rel_rmse: 1e-5, trusted: row_sums.py:forward}
  fp16: {atol: 1e-2, rel_rmse: 1e-3}
objective: {cases: [main]}
baselines: {torch.sum: row_sums.py:forward}
target: {arch: sm_89, registers: 72, shared: 99KiB}
budget: {trials: 20}
"""

REFERENCE = '''\
def forward(x, eps, wide):
    """Sums of rows. {{ not_a_variable }} {% not_a_tag %}"""
    return x.sum(-1)
'''

KERNEL = """\
/* evoengine
name: {name}
precision: {tier}
summary: one warp a row
tunables:
  THREADS: [128, 256]
  ROWS: [1, 2]
launches:
  - kernel: row_sums
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    args: [x, out, N, C]
*/
#include <cuda_fp16.h>
__global__ void __launch_bounds__(THREADS) row_sums(const float* x, float* out, int N, int C) {{
    // {name}
}}
"""


def kernel(name: str = "plain", tier: str = "fp32") -> str:
    """A kernel file that binds for every case of the task."""
    return KERNEL.format(name=name, tier=tier)


def write_task(folder: Path) -> Path:
    """The task file, with its reference beside it."""
    (folder / "row_sums.py").write_text(REFERENCE)
    path = folder / "row_sums.yaml"
    path.write_text(TASK)
    return path


ENVIRONMENT = Environment(
    device="cuda:0 NVIDIA L4",
    kind="cuda",
    arch="sm_89",
    sm_count=58,
    max_shared_bytes=101376,
    l2_bytes=48 * 1024**2,
    memory_bytes=24 * 1024**3,
    versions={},
)


def evaluated(
    trial: int,
    name: str = "",
    tier: str = "fp32",
    status: Status = Status.correct,
    reason: str = "",
    detail: str = "",
    tunables: dict[str, int] | None = None,
) -> Evaluated:
    """A settled trial; correct ones are timed as twice as fast as the baseline."""
    source = kernel(name or f"kernel_{trial}", tier)
    score = Interval(value=0.5, low=0.49, high=0.51) if status == Status.correct else None
    hidden = InputSetCheck(
        distribution="normal",
        seed=0,
        ok=True,
        max_abs=1e-6,
        rel_rmse=1e-6,
        failing_share=0.0,
        worst_index=(7918, 4242),
        worst_output="7919.0",
        limit_abs=1e-4,
        limit_rel_rmse=1e-5,
        trusted_max_abs=1e-6,
        trusted_rel_rmse=1e-6,
    )
    shown = hidden.model_copy(update={"worst_index": (3,), "worst_output": "1.0"})
    verdict = Verdict(
        status=status,
        reason=reason,
        detail=detail,
        tier=tier,
        score=score,
        latency_us=score,
        resources=(
            KernelResources(
                kernel="row_sums",
                arch="sm_89",
                registers=40,
                static_shared_bytes=0,
                dynamic_shared_bytes=512,
                local_bytes=0,
                spill_store_bytes=0,
                spill_load_bytes=0,
                block_threads=256,
                machine_code=MachineCode(
                    instructions=120,
                    kinds=(("fma", 40), ("alu", 70), ("global", 10)),
                    loop_kinds=(("fma", 32), ("alu", 20), ("global", 8)),
                    accesses=(("global load", 4, 9), ("global store", 4, 1)),
                    loop_accesses=(("global load", 4, 8),),
                    loop_barriers=1,
                ),
            ),
        ),
        checks=(
            CaseCheck(case="main", hidden=False, ok=True, sets=(shown,)),
            CaseCheck(case="zq_ragged", hidden=True, ok=True, sets=(hidden,)),
        ),
    )
    outcome = Outcome(
        trial=trial,
        operator="mutate",
        parents=(),
        source_digest=kernel_file.parse(source).source_digest,
        tunables=tunables or {},
        label=name or f"kernel_{trial}",
        status=status,
        reason=reason,
        tier=tier,
        code_digest=str(trial),
        score=score,
        latency_us=score,
    )
    return Evaluated(outcome, source, verdict)


def with_place(item: Evaluated, place: int) -> tuple[Elite, Evaluated]:
    """`item` with its place."""
    return Elite(tier=item.outcome.tier, place=place, outcome=item.outcome), item


def request(
    task_path: Path,
    trial: int = 20,
    seed: int = 1,
    elites: tuple[Evaluated, ...] = (),
    recent: tuple[Evaluated, ...] = (),
    seeds: tuple[Evaluated, ...] = (),
) -> Request:
    """A request; the elites hold their places in the order given, counted for each tier."""
    places: dict[str, int] = {}
    held = []
    for item in elites:
        places[item.outcome.tier] = places.get(item.outcome.tier, 0) + 1
        held.append(with_place(item, places[item.outcome.tier]))
    return Request(
        trial=trial,
        seed=seed,
        task=load_task(task_path),
        environment=ENVIRONMENT,
        seeds=seeds,
        elites=tuple(held),
        recent=recent,
        pending=_never_awaited,
        settled=trial,
        asking=trial - len(seeds),
        asking_settled=trial - len(seeds),
    )


async def _never_awaited(wanted: object) -> tuple[Proposal, ...]:
    raise AssertionError(
        "requests to a model would no longer be in flight together if one waited for those"
        " before it"
    )
