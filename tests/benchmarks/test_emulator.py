"""The emulator's benchmark measures what it says, tells marks that hold from those that do not, and
survives what fails.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from benchmarks import emulator
from benchmarks.emulator import KERNELS, Memory, as_markdown, masked_row, measure, row_of, subjects
from evoengine.paths import find_task
from evoengine.task.load import load_task

FOUND = {
    "clang_s": 0.2, "threads": 2, "blocks": 64, "jit_s": 0.2, "jit_processor_s": 0.2,
    "checked_jit_s": 0.3, "sampled_s": 0.1,
    "checked_s": 0.7, "one_thread_s": 0.06, "run_s": 0.04, "processor_s": 0.06, "rss_mib": 346.0,
    "error": 1e-4,
    "peer": "sdpa.py:half", "peer_s": 0.02, "peer_float32_s": 0.01,
}  # fmt: skip


def test_a_child_measures_a_seed_whose_result_is_right():
    found = measure("sdpa_l4", "sdpa_mma", "single")
    assert "problem" not in found, found
    assert found["blocks"] == 2
    assert found["error"] < 2e-3
    times = (
        "clang_s",
        "jit_s",
        "checked_jit_s",
        "sampled_s",
        "checked_s",
        "one_thread_s",
        "run_s",
        "processor_s",
        "peer_s",
        "peer_float32_s",
    )
    assert all(found[name] > 0 for name in times)
    assert found["rss_mib"] > 50, "torch alone has that"


def test_what_a_child_cannot_do_is_a_row_of_its_own():
    row = row_of("sdpa_l4", "sdpa_mma", "no_such_case")
    assert row.keys() == {"kernel", "case", "problem"}
    assert "no_such_case" in row["problem"]


@pytest.mark.parametrize(
    ("kernel", "run_s", "kept"),
    [("sdpa_v2b", 0.29, True), ("sdpa_v2b", 0.31, False), ("sdpa_mma", 0.06, False)],
)
def test_marks_of_the_mission_case_follow_the_kind_of_kernel(monkeypatch, kernel, run_s, kept):
    monkeypatch.setattr(emulator, "measure", lambda *_: {**FOUND, "run_s": run_s})
    row = row_of("sdpa_l4", kernel, "mission")
    assert row["run kept"] is kept
    assert row["scaling"] == pytest.approx(0.06 / run_s)
    assert row_of("sdpa_l4", kernel, "long")["run kept"] is None, "no mark was set for other cases"


def test_the_slower_of_both_modes_decides_whether_code_generation_is_in_time(monkeypatch):
    monkeypatch.setattr(emulator, "measure", lambda *_: {**FOUND, "checked_jit_s": 1.1})
    assert row_of("sdpa_l4", "sdpa_mma", "mission")["jit kept"] is False


def test_the_run_with_masked_features_is_compared_with_the_one_before(monkeypatch):
    asked = []
    monkeypatch.setattr(
        emulator, "measure", lambda *what: asked.append(what) or {**FOUND, "run_s": 0.1}
    )
    row = masked_row("sdpa_l4", "sdpa_mma", "mission", {"run ms": 40.0})
    assert asked == [("sdpa_l4", "sdpa_mma", "mission", "avx512")]
    assert row["x"] == pytest.approx(2.5)


def test_every_seed_is_measured_on_every_case_it_is_meant_for():
    seeds = {
        (task, name.removesuffix(".cu"))
        for task in KERNELS
        for name in load_task(find_task(task)).seeds_from
    }
    assert seeds <= {(task, kernel) for task, kernels in KERNELS.items() for kernel in kernels}
    chosen = list(subjects(None, None))
    assert len(chosen) == len(set(chosen)) == 6 * 5 + 2
    assert list(subjects(["layernorm"], None)) == [("layernorm", "layernorm", "rows")]


def test_memory_of_a_grandchild_counts_after_it_has_ended():
    program = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; b = b\"x\" *"
        " (300 << 20); time.sleep(0.5)'])"
    )
    memory = Memory()
    with memory.watching():
        subprocess.run([sys.executable, "-c", program], check=True)
        time.sleep(0.1)
    assert 300 <= memory.peak_mib < 400


def test_a_page_names_command_machine_and_failures_last():
    rows = [{"kernel": "a", "problem": "no clang"}, {"kernel": "b", "run ms": 1.5}]
    page = as_markdown({"processor": "Some CPU"}, [("Every seed", rows)], ["--only", "a", "b"])
    assert "`python -m benchmarks.emulator --only a b`" in page
    assert "processor Some CPU." in page
    assert page.index("run ms") < page.index("problem")
