"""The benchmarks run, at tiny sizes, so that they do not rot; what they measure here means
nothing.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from benchmarks import loop, verdict
from benchmarks.subjects import FLAWS, KERNELS, renewed, uncompilable, wrong
from benchmarks.table import table
from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.evaluate.cuda_driver import CudaDevices
from evoengine.paths import find_kernel, find_task
from evoengine.protocols import Job, Report
from evoengine.records import CaseTiming, Environment, Samples, Status
from evoengine.task.load import load_task

ENVIRONMENT = Environment(
    device="scripted:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=232448,
    l2_bytes=1,
    memory_bytes=1,
    versions={"torch": "2.11"},
)


class ScriptedDevice:
    """protocols.Device: judges the first kernel right, and whatever has other launches as its name
    says.
    """

    def __init__(self) -> None:
        self.right = None

    async def start(self, task, task_path):
        self.task = task
        return ENVIRONMENT

    async def run(self, job: Job, progress, verify=False) -> Report:
        progress("checking")
        launches = [case.plan.launches for case in job.cases]
        self.right = self.right or launches
        kernel = launches[0][0].kernel
        if launches != self.right:
            status = {"endless": Status.timeout, "trapping": Status.crash}.get(
                kernel, Status.wrong_result
            )
            return Report(status=status, reason="scripted", phases_s={"check": 0.1})
        samples = Samples(
            candidate_calls=1, baseline_calls=1, candidate_us=(2.0, 2.0), baseline_us=(1.0, 1.0)
        )
        timings = tuple(
            CaseTiming(case=case, baseline=name, hot=samples, cold=samples)
            for case, name in job.baselines.items()
        )
        return Report(
            status=Status.correct,
            timings=timings,
            is_coarse=job.limit is not None and job.limit < 1,  # its ratio is 2
            phases_s={"check": 0.2, "timing": 0.3},
        )

    async def close(self):
        pass


def by_name(rows):
    return {row["measured"]: row for row in rows}


def test_loop_prints_a_table_and_writes_the_same_rows(tmp_path, capsys):
    loop.main(
        [
            "--trials",
            "50",
            "--tuned",
            "30",
            "--folder",
            str(tmp_path),
            "--json",
            str(tmp_path / "rows.json"),
        ]
    )
    written = json.loads((tmp_path / "rows.json").read_text())
    rows = by_name(written["rows"])
    assert {
        "trials a second, 25 to 50",
        "memory after 50 trials",
        "resume of 50 trials",
        "with the tuner: trials a second over 30",
    } <= set(rows)
    assert all(row["value"] > 0 for name, row in rows.items() if not name.startswith("growth"))
    printed = capsys.readouterr().out
    assert table(written["rows"]) in printed and written["machine"]["processor"] in printed
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"], "the runs are removed again"


def test_verdict_without_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(
        verdict, "cuda_devices", lambda: CudaDevices((), problem="no NVIDIA driver")
    )
    with pytest.raises(SystemExit, match="needs a CUDA device: no NVIDIA driver"):
        verdict.main(["--repeats", "1"])


def test_verdict_measures_every_kind_of_candidate_and_lost_workers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verdict, "cuda_device", lambda _: ScriptedDevice())
    monkeypatch.setattr(verdict, "SPARE_S", 0.0)
    options = verdict.parse_arguments(["--repeats", "2", "--only", "layernorm", "--skip-extension"])
    rows, environment = asyncio.run(verdict.measure(options, tmp_path))
    found = by_name(rows)
    assert environment.versions.keys() == {"torch", "nvrtc"}
    assert [row["note"] for row in rows] == [""] * 8, "every verdict was the expected one"
    assert found["layernorm: layernorm, no place to win"]["mark"] == "<= 0.37"
    assert found["layernorm: layernorm"]["runs"] == 2
    assert found["layernorm: layernorm"]["timing_s"] == 0.3
    assert found["layernorm: layernorm, uncompilable"]["check_s"] is None
    assert found["layernorm: layernorm"]["compile_s"] > 0, "nothing came from a cache"
    assert len(list((tmp_path / "cubins").rglob("*.cubin"))) >= 2 * 14, (
        "each of fourteen sources was compiled for two kinds of rows"
    )
    assert table(rows[6:]) in capsys.readouterr().err, "each part is shown as soon as it is known"


def test_a_verdict_that_was_not_expected_is_a_note_and_keeps_no_mark():
    series = verdict.Series("seed", mark_s=1.0)
    series.add(0.5, verdict.Verdict(status=Status.wrong_result, reason="max abs error 1"))
    assert series.row()["kept"] is False
    assert series.row()["note"] == "wrong_result: max abs error 1"


@pytest.mark.parametrize(("check_s", "is_kept"), [(0.02, True), (0.04, False)])
def test_the_mark_of_a_wrong_candidate_is_about_neither_its_diagnosis_nor_its_compilation(
    check_s, is_kept
):
    phases_s = {"compile": 0.5, "check": check_s, "forensics": 2.0}
    series = verdict.Series("wrong", Status.wrong_result, 0.03, beside_compile=True)
    total_s = sum(phases_s.values())
    series.add(
        total_s, verdict.Verdict(status=Status.wrong_result, reason="wrong", phases_s=phases_s)
    )
    row = series.row()
    assert (row["kept"], row["mark"]) == (is_kept, "<= compile + 0.03")
    assert (row["median_s"], row["forensics_s"]) == (total_s, 2.0)
    assert row["marked_s"] == pytest.approx(0.5 + check_s)


def test_the_extension_is_compared_by_the_sum_of_its_phases():
    spent = {"start": 9.0, "compile": 50.0, "check": 1.0, "timing": 1.0}
    peer, ratio = verdict.extension_rows("layernorm through load_inline", spent, 0.5)
    assert (peer["median_s"], peer["compile_s"], ratio["median_s"]) == (52.0, 50.0, 104.0)


@pytest.mark.parametrize(
    ("task_name", "kernel"),
    [(task, kernel) for task, kernels in KERNELS.items() for kernel in kernels],
)
def test_every_measured_kernel_is_a_seed_of_its_task_whose_flaw_still_binds(task_name, kernel):
    task = load_task(find_task(task_name))
    assert f"{kernel}.cu" in task.seeds_from
    source = find_kernel(kernel).read_text()
    spoiled = [wrong(kernel, source)] if kernel in FLAWS else []
    for text in (renewed(source, 7), uncompilable(source), *spoiled):
        candidate = candidates.parse(text)
        assert candidate.digest != candidates.parse(source).digest
        for case in task.all_cases:
            bind(candidate, task, case, limits_of_arch("sm_90"))


def test_the_extension_program_starts_and_launches_the_seed_as_its_plan_does():
    program = (
        "from benchmarks.extension import *;"
        " print(cuda_source(candidates.parse(find_kernel(NAME).read_text())))"
    )
    text = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    defaults = candidates.parse(find_kernel("layernorm").read_text()).tunables
    assert all(f"#define {name} {value}\n" in text for name, value in defaults.items())
    assert (
        text.index("#include <c10")
        < text.index("#define")
        < text.index("namespace candidate {")
        < text.index("layernorm_forward(")
    )


def test_a_table_shows_every_column_and_no_samples():
    rows = [
        {"measured": "a", "value": 1.5, "samples": [1.0]},
        {"measured": "b", "kept": False, "value": 12345.6},
    ]
    assert table(rows).splitlines() == [
        "| measured | value  | kept |",
        "|----------|--------|------|",
        "| a        | 1.500  |      |",
        "| b        | 12,346 | NO   |",
    ]
