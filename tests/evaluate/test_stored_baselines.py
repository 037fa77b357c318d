"""Times of baselines outlive a run, as long as nothing that they depend on has changed.

The device is a real grader process that answers by a script: each time that it is asked for times,
they are 1 us longer.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import TaskError
from evoengine.evaluate import stored_baselines
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import GraderDevice, cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.stored_baselines import StoredBaselines
from evoengine.protocols import BaselineTimes, ExecutorStart
from evoengine.records import Status, Verdict
from evoengine.search.references import reference_digests
from evoengine.task.load import load_task
from tests.evaluate.device.kernels import source
from tests.evaluate.device.scripted_worker import ENVIRONMENT
from tests.evaluate.device.test_contract import SCRIPTED, TASK
from tests.evaluate.kept_fork_server import kept

BASELINES = (
    "baselines: {torch: scale.py:forward, other: scale.py:forward, broken: scale.py:forward}"
)
FUNCTIONS = "def forward(x):\n    return x * 2\n"
TIMES = BaselineTimes(median_us={"torch": 1.5}, problems={"broken": "no kernel image"})


class There(CompilePool):
    """A pool whose compiler is never asked."""

    async def start(self) -> str:
        return "13.0"

    async def warm(self) -> None: ...


class Bench:
    """A task in a folder, and starts of executors for it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / "scale.yaml"
        self.records = folder / "cache" / "baselines"
        self.functions = folder / "scale.py"
        self.functions.write_text(FUNCTIONS)
        self.write("torch: scale.py:forward}", BASELINES.partition("{")[2])

    def write(self, old: str, new: str) -> None:
        assert old in TASK
        self.path.write_text(TASK.replace(old, new))

    def stored(self, **options: Any) -> StoredBaselines:
        task = load_task(self.path)
        references = reference_digests(task, self.path)
        return StoredBaselines(self.records, task, references, **options)

    def start(self, **options: Any) -> ExecutorStart:
        async def started() -> ExecutorStart:
            device = GraderDevice(kept().server(SCRIPTED))
            executor = LocalExecutor(
                load_task(self.path),
                str(self.path),
                There(1),
                device,
                stored=self.stored(**options),
            )
            try:
                return await executor.start()
            finally:
                await executor.close()

        return kept().run(started())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "task")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*"))


def test_the_second_start_times_nothing_and_is_told_the_same_but_for_a_notice(
    bench: Bench,
) -> None:
    first, second = bench.start(), bench.start()
    assert first.notices == ()
    assert first.baseline_us == {"small": {"torch": 1.0, "other": 11.0}}
    assert first.baseline_problems == {"broken": "no kernel image"}
    assert second.model_copy(update={"notices": ()}) == first
    assert len(second.notices) == 1
    assert re.fullmatch(
        r"baselines as measured on \d{4}-\d\d-\d\d with the same task, versions and kind of GPU;"
        r" `evoengine run --measure-baselines` measures them anew",
        second.notices[0],
    )
    assert re.fullmatch(r"[0-9a-f]{32}\.json", *files(bench.records))


def test_measuring_anew_replaces_what_is_kept(bench: Bench) -> None:
    bench.start()
    anew, after = bench.start(measure_anew=True), bench.start()
    assert anew.notices == () and anew.baseline_us["small"]["torch"] == 2.0
    assert after.notices and after.baseline_us == anew.baseline_us
    assert len(files(bench.records)) == 1


def test_a_lack_of_memory_is_not_kept_and_the_user_is_warned(bench: Bench) -> None:
    bench.write("{torch: scale.py:forward}", "{torch: scale.py:forward, greedy: scale.py:forward}")
    for number in (1, 2):
        start = bench.start()
        assert start.baseline_us["small"]["torch"] == number
        assert start.baseline_problems == {"greedy": "out of memory"}
        assert start.notices == (
            "the times of baselines are not kept: greedy may work the next time",
        )
    assert files(bench.records) == []


def test_where_no_baseline_works_nothing_is_kept(bench: Bench) -> None:
    bench.write("{torch: scale.py:forward}", "{broken: scale.py:forward}")
    for _ in range(2):
        with pytest.raises(TaskError, match="no baseline works for case small on scripted:0"):
            bench.start()
    assert files(bench.records) == []


def test_a_folder_that_cannot_be_written_costs_a_notice(bench: Bench) -> None:
    bench.records.parent.write_text("not a folder")
    start = bench.start()
    assert start.baseline_us["small"]["torch"] == 1.0
    assert re.match(
        r"the times of baselines cannot be kept in .*/baselines \(.*\); every run measures",
        start.notices[0],
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: {},
        lambda record: {**record, "key": "0" * 32},
        lambda record: {**record, "more": 1},
        lambda record: {**record, "cases": {}},
        lambda record: {**record, "cases": {"large": record["cases"]["small"]}},
        lambda record: {**record, "cases": {"small": {"median_us": {}}}},
        lambda record: {**record, "cases": {"small": {"median_us": {"torch": 0.0}}}},
        lambda record: {**record, "cases": {"small": {"median_us": {"torch": float("inf")}}}},
        lambda record: {**record, "cases": {"small": {"median_us": {"unknown": 1.0}}}},
    ],
)
def test_a_damaged_record_is_measured_anew_and_replaced(bench: Bench, damage: Any) -> None:
    bench.start()
    (record,) = bench.records.glob("*.json")
    whole = record.read_text()
    record.write_text(json.dumps(damage(json.loads(whole))))
    repaired = bench.start()
    assert repaired.notices == () and repaired.baseline_us["small"]["torch"] == 2.0
    assert bench.start().notices and len(files(bench.records)) == 1


@pytest.mark.parametrize("text", [b"", b'{"key": "', b"\xff\xfe", b"[]"])
def test_a_file_that_is_no_record_is_replaced(bench: Bench, text: bytes) -> None:
    stored = bench.stored()
    assert stored.keep(ENVIRONMENT, {"small": TIMES}) == ()
    (record,) = bench.records.glob("*.json")
    record.write_bytes(text)
    assert stored.find(ENVIRONMENT) is None
    assert stored.keep(ENVIRONMENT, {"small": TIMES}) == ()
    found = stored.find(ENVIRONMENT)
    assert found is not None and found.cases == {"small": TIMES}


VERSIONS = dict.fromkeys(
    ("cuda_driver", "nvrtc", "torch", "cuda", "cudnn", "cupy", "triton", "evoengine"), "1.0"
)
HERE = ENVIRONMENT.model_copy(update={"device": "cuda:0 NVIDIA H200", "versions": VERSIONS})


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda:0 NVIDIA H100"},
        {"arch": "sm_100"},
        {"memory_bytes": 2},
        *({"versions": {**VERSIONS, name: "1.1"}} for name in VERSIONS),
        {"versions": {name: "1.0" for name in VERSIONS if name != "triton"}},
    ],
    ids=str,
)
def test_another_gpu_or_version_misses(bench: Bench, change: dict[str, Any]) -> None:
    stored = bench.stored()
    stored.keep(HERE, {"small": TIMES})
    assert stored.find(HERE) is not None
    assert stored.find(HERE.model_copy(update=change)) is None


def test_another_gpu_of_the_same_model_does_not_miss(bench: Bench) -> None:
    stored = bench.stored()
    stored.keep(HERE, {"small": TIMES})
    assert stored.find(HERE.model_copy(update={"device": "cuda:7 NVIDIA H200"})) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{torch: scale.py:forward}", "{torch: scale.py:forward, more: scale.py:forward}"),
        ("N: 4096", "N: 8192"),
        ("atol: 1e-6", "atol: 1e-5"),
        ("cases: [small]", "cases: [small], cache: cold"),
    ],
)
def test_a_changed_task_misses(bench: Bench, old: str, new: str) -> None:
    bench.path.write_text(TASK)
    bench.stored().keep(HERE, {"small": TIMES})
    assert bench.stored().find(HERE) is not None
    bench.write(old, new)
    assert bench.stored().find(HERE) is None


def test_a_changed_function_misses_and_so_does_one_that_its_file_imports(bench: Bench) -> None:
    helper = bench.path.parent / "helper.py"
    helper.write_text("factor = 2\n")
    bench.stored().keep(HERE, {"small": TIMES})
    bench.functions.write_text("from helper import factor\n" + FUNCTIONS)
    assert bench.stored().find(HERE) is None
    bench.stored().keep(HERE, {"small": TIMES})
    assert bench.stored().find(HERE) is not None
    helper.write_text("factor = 2.0\n")
    assert bench.stored().find(HERE) is None


@pytest.mark.parametrize(
    ("name", "misses"),
    [
        ("EVOENGINE_VARIANT", True),
        ("TORCHINDUCTOR_MAX_AUTOTUNE", True),
        ("NVIDIA_TF32_OVERRIDE", True),
        ("CUBLAS_WORKSPACE_CONFIG", True),
        ("CUDA_VISIBLE_DEVICES", False),
        ("EVOENGINE_CACHE_DIR", False),
        ("TRITON_CACHE_DIR", False),
        ("EDITOR", False),
    ],
)
def test_a_variable_that_a_library_or_function_may_read_misses(
    bench: Bench, name: str, misses: bool
) -> None:
    bench.stored(environ={}).keep(HERE, {"small": TIMES})
    assert (bench.stored(environ={name: "1"}).find(HERE) is None) is misses


@pytest.mark.parametrize("name", ["FORMAT", "TIMING_VERSION"])
def test_another_format_or_procedure_of_timing_misses(
    bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.stored().keep(HERE, {"small": TIMES})
    monkeypatch.setattr(stored_baselines, name, getattr(stored_baselines, name) + 1)
    assert bench.stored().find(HERE) is None


COMPILED = """\
import torch

def forward(x):
    return x * 2

compiled = torch.compile(forward, dynamic=False)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
def test_a_verdict_after_a_start_from_stored_times_is_timed_against_the_fastest_baseline(
    bench: Bench, tmp_path: Path
) -> None:
    bench.functions.write_text(COMPILED)
    bench.write("{torch: scale.py:forward}", "{torch.compile: scale.py:compiled}")
    code_folder = tmp_path / "baseline-code"

    async def judged() -> tuple[ExecutorStart, Verdict]:
        executor = LocalExecutor(
            load_task(bench.path),
            str(bench.path),
            CompilePool(2),
            cuda_device(0, code_folder),
            stored=bench.stored(),
        )
        try:
            start = await executor.start()
            candidate = kernel_file.parse(source("correct"))
            return start, await executor.evaluate(candidate, lambda _: None)
        finally:
            await executor.close()

    (first, _), (second, verdict) = asyncio.run(judged()), asyncio.run(judged())
    assert first.notices == () and len(second.notices) == 1
    assert second.baseline_us == first.baseline_us
    assert verdict.status is Status.correct, verdict
    assert verdict.timings[0].baseline == "torch.compile"
    assert code_folder.stat().st_mode & 0o777 == 0o700
    assert list((code_folder / "inductor").rglob("*.py")) and any(
        path.is_file() for path in (code_folder / "triton").rglob("*")
    )


@pytest.mark.parametrize(
    ("median_us", "fastest"),
    [
        ({"plain": 10.0, "compiled": 9.9}, "plain"),  # the same but for noise: the first
        ({"compiled": 9.9, "plain": 10.0}, "compiled"),
        ({"plain": 10.0, "compiled": 9.8}, "compiled"),
        ({"slow": 30.0, "plain": 10.1, "compiled": 10.0}, "plain"),
        ({}, None),
    ],
)
def test_the_baseline_of_speed_ups_is_the_fastest_and_chance_does_not_choose_between_two(
    median_us: dict[str, float], fastest: str | None
) -> None:
    times = BaselineTimes(median_us=median_us)
    kept_times = BaselineTimes.model_validate_json(times.model_dump_json())
    assert times.fastest == kept_times.fastest == fastest
