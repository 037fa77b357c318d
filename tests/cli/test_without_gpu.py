from __future__ import annotations

import json
from pathlib import Path

import pytest

from evoengine import wiring
from evoengine.cli import examination
from evoengine.evaluate.compile.unit import Toolchain
from evoengine.evaluate.probe import CudaDevices
from evoengine.records import Status, Verdict
from tests.cli.conftest import Call
from tests.report.scene import verdict_of

HEALTHY = Toolchain(
    nvrtc="13.5", library="/lib/libnvrtc.so.13", architectures=(75, 90), headers={"mma.h": "/x"}, source="wheels", confined=True
)


@pytest.fixture
def no_gpu(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """No device; compiling is scripted: the second kernel does not compile."""

    async def compile_only(task, task_path, candidates, progress):
        progress("compiling")
        found = []
        for number, parsed in enumerate(candidates):
            whole = verdict_of(parsed)
            if number:
                verdict = Verdict(status=Status.compile_error, reason="scale.cu(3): error: expected a ';'")
            else:
                verdict = Verdict(
                    status=Status.correct, reason="compiled", resources=whole.resources[1:], target_exceeds=whole.target_exceeds
                )
            found.append((parsed, verdict))
        return found

    monkeypatch.setattr(wiring, "find_device", lambda device: None)
    monkeypatch.setattr(wiring, "compile_only", compile_only)
    return call


def test_run_without_a_gpu_says_so_compiles_and_exits_with_5(no_gpu: Call, task: Path) -> None:
    found = no_gpu("run", task)
    assert found.code == 5
    assert "There is no GPU on this machine" in found.err and "compiled for sm_89" in found.err and "evoengine doctor" in found.err
    assert "80/72" in found.out and "over" in found.out and "4.1/99.0" in found.out
    assert "scale_b: compile_error: scale.cu(3): error: expected a ';'" in found.out
    assert "correct" not in found.out
    assert not Path("runs").exists()


def test_task_without_a_target_is_said_to_have_none(no_gpu: Call, task: Path) -> None:
    task.write_text(task.read_text().replace("target: {arch: sm_89, registers: 72, shared: 99KiB}\n", ""))
    found = no_gpu("run", task)
    assert found.code == 5 and "compiled for sm_90, because task scale names no target" in found.err


def test_json_without_a_gpu_says_compiled_and_never_correct(no_gpu: Call, task: Path) -> None:
    found = no_gpu("run", task, "--json")
    said = json.loads(found.out)
    assert found.code == 5 and said["device"] is None and said["arch"] == "sm_89"
    assert [kernel["compiled"] for kernel in said["kernels"]] == [True, False]
    assert said["kernels"][0]["resources"][0]["target_registers"] == 72
    assert '"correct"' not in found.out


def test_evaluate_without_a_gpu_compiles_the_one_kernel(no_gpu: Call, task: Path) -> None:
    found = no_gpu("evaluate", "scale_a.cu", "--task", task, "--set", "BLOCK=64")
    assert found.code == 5 and "scale_a" in found.out and "80/72" in found.out


def test_tasks_lists_the_packaged_ones(call: Call) -> None:
    rows = {row["name"]: row for row in json.loads(call("tasks", "--json").out)}
    assert {"sdpa_l4", "sdpa_h200", "layernorm", "matmul_fp16"} <= set(rows)
    assert rows["sdpa_l4"]["target"] == "sm_89" and rows["sdpa_l4"]["trials"] == 45
    text = call("tasks").out
    assert all(name in text for name in rows)


# ---------------------------------------------------------------- doctor


def findings(call: Call, monkeypatch: pytest.MonkeyPatch, devices: CudaDevices, toolchain: Toolchain = HEALTHY, *more: str):
    monkeypatch.setattr(examination, "cuda_devices", lambda: devices)
    monkeypatch.setattr(examination, "_toolchain", lambda: toolchain)
    found = call("doctor", "--json", *more)
    assert call("doctor", *more).code == found.code
    return found.code, {row["name"]: row for row in json.loads(found.out)}


def test_doctor_without_a_driver_says_what_to_do_and_exits_with_5(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = findings(call, monkeypatch, CudaDevices((), problem="no NVIDIA driver (libcuda.so.1 is not there)"))
    assert code == 5
    assert found["driver"]["state"] == "missing" and "install NVIDIA's driver" in found["driver"]["remedy"]
    assert found["compiler"]["state"] == "ok" and found["headers"]["state"] == "ok"
    assert found["model endpoint"]["state"] == "absent" and "OPENAI_API_KEY" in found["model endpoint"]["remedy"]


def test_doctor_with_a_device_but_a_torch_for_the_cpu_exits_with_6(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "_version", lambda package: {"torch": "2.13.0+cpu", "cupy-cuda13x": "14.2"}.get(package))
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA H200",), "13.0"))
    assert code == 6 and found["devices"]["found"] == "cuda:0 NVIDIA H200"
    assert found["torch"]["state"] == "missing" and "without CUDA" in found["torch"]["found"]


def test_doctor_of_a_whole_machine_exits_with_0(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "_version", lambda package: {"torch": "2.11.0+cu130", "cupy-cuda13x": "14.2"}.get(package))
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA H200",), "13.0"))
    assert code == 0 and all(row["state"] in ("ok", "absent") for row in found.values())


def test_doctor_names_a_cupy_that_is_too_new_for_the_driver(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "_version", lambda package: {"torch": "2.11.0+cu130", "cupy-cuda13x": "14.2"}.get(package))
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA L4",), "12.4"))
    assert code == 6 and "evoengine[cuda12]" in found["CuPy"]["remedy"]


def test_doctor_names_missing_headers_and_a_compiler_that_does_not_start(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Toolchain(problem="Traceback ...\nImportError: no cupy_backends", missing=("mma.h",))
    _, found = findings(call, monkeypatch, CudaDevices(("NVIDIA L4",), "13.0"), broken)
    assert "ImportError: no cupy_backends" in found["compiler"]["found"] and "pip install" in found["compiler"]["remedy"]
    assert found["headers"]["found"] == "mma.h not found"


def test_doctor_never_shows_the_key(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:sk-secret@127.0.0.1:9/v1?key=sk-secret")
    _, found = findings(call, monkeypatch, CudaDevices(()), HEALTHY, "--connect")
    row = found["model endpoint"]
    assert "http://127.0.0.1:9/v1" in row["found"] and "cannot be reached" in row["found"]
    assert "sk-secret" not in json.dumps(found)


def test_doctor_names_a_folder_that_cannot_hold_runs(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _, found = findings(call, monkeypatch, CudaDevices(()), HEALTHY, "--runs-dir", str(tmp_path / "file" / "runs"))
    assert found["runs folder"]["state"] == "missing" and "--runs-dir" in found["runs folder"]["remedy"]
