from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evoengine.cli import doctor_checks, doctor_emulator_checks
from evoengine.cli.doctor_nvml_check import check_nvml
from evoengine.evaluate.compile.compile_unit import Toolchain
from evoengine.evaluate.cuda_driver import CudaDevices, CudaFacts
from evoengine.evaluate.nvml import Nvml
from tests.cli.conftest import Call
from tests.evaluate.fake_pynvml import BUS_ID, FakePynvml

HEALTHY = Toolchain(
    nvrtc="13.5",
    library="/lib/libnvrtc.so.13",
    architectures=(75, 90),
    headers={"mma.h": "/x"},
    source="wheels",
    confined=True,
)
CLANG = Toolchain(clang="22.1.8", confined=True)


def test_tasks_lists_the_packaged_ones(call: Call) -> None:
    rows = {row["name"]: row for row in json.loads(call("tasks", "--json").out)}
    assert {"sdpa_l4", "sdpa_h200", "layernorm", "matmul_fp16"} <= set(rows)
    assert rows["sdpa_l4"]["target"] == "sm_89" and rows["sdpa_l4"]["trials"] == 45
    text = call("tasks").out
    assert all(name in text for name in rows)


def findings(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    devices: CudaDevices,
    toolchain: Toolchain = HEALTHY,
    *more: str,
    clang: Toolchain = CLANG,
):
    monkeypatch.setattr(doctor_checks, "cuda_devices", lambda: devices)
    monkeypatch.setattr(doctor_checks, "_toolchain", lambda: toolchain)
    monkeypatch.setattr(doctor_emulator_checks, "_clang", lambda: clang)
    found = call("doctor", "--json", *more)
    assert call("doctor", *more).code == found.code
    return found.code, {row["name"]: row for row in json.loads(found.out)}


NO_DRIVER = CudaDevices((), problem="no NVIDIA driver (libcuda.so.1 is not there)")


def test_doctor_without_a_driver_finds_the_emulator_and_nothing_missing(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = findings(call, monkeypatch, NO_DRIVER)
    assert code == 0
    assert (
        found["driver"]["state"] == "absent"
        and "the emulator does not need it" in found["driver"]["remedy"]
    )
    assert (
        found["emulator: clang"]["found"] == "clang 22.1.8"
        and found["emulator: packages"]["state"] == "ok"
    )
    assert "core" in found["emulator: processor"]["found"]


def test_doctor_without_a_driver_and_without_clang_says_what_to_do_and_exits_with_5(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = findings(
        call, monkeypatch, NO_DRIVER, clang=Toolchain(problem="no clang that compiles CUDA")
    )
    assert code == 5
    assert (
        found["emulator: clang"]["state"] == "missing"
        and "evoengine[emulator]" in found["emulator: clang"]["remedy"]
    )
    assert (
        found["driver"]["state"] == "missing"
        and "install NVIDIA's driver" in found["driver"]["remedy"]
    )
    assert found["compiler"]["state"] == "ok" and found["headers"]["state"] == "ok"
    assert (
        found["model endpoint"]["state"] == "absent"
        and "OPENAI_API_KEY" in found["model endpoint"]["remedy"]
    )


def test_doctor_with_a_device_but_a_torch_for_the_cpu_exits_with_6(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor_checks,
        "_version",
        lambda package: {"torch": "2.13.0+cpu", "cupy-cuda13x": "14.2"}.get(package),
    )
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA H200",), "13.0"))
    assert code == 6 and found["devices"]["found"] == "cuda:0 NVIDIA H200"
    assert found["torch"]["state"] == "missing" and "without CUDA" in found["torch"]["found"]


@pytest.mark.parametrize(
    ("minor", "emulated", "state", "words"),
    [
        (0, True, "ok", "on the CPU, of what would take a place on a GPU"),
        (9, True, "absent", "cuda:0: the emulator has no target of architecture 'sm_99'"),
        (0, False, "absent", "the emulator lacks what is named above"),
    ],
)
def test_doctor_says_whether_checked_mode_can_follow_candidates_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, minor: int, emulated: bool, state: str, words: str
) -> None:
    facts = CudaFacts("NVIDIA H200", 9, minor, 132, 0, 0, 0)
    monkeypatch.setattr(doctor_emulator_checks, "cuda_facts", lambda ordinal: facts)
    (found,) = doctor_emulator_checks.check_beside(CudaDevices(("NVIDIA H200",), "13.0"), emulated)
    assert (found.name, found.state, found.exit_code) == ("checked mode", state, 0)
    assert found.found.startswith(words)
    assert not list(doctor_emulator_checks.check_beside(NO_DRIVER, emulated))


def test_doctor_says_whether_nvml_can_be_read_and_what_it_does_not_give() -> None:
    devices = CudaDevices(("NVIDIA H200",), "13.0", bus_ids=(BUS_ID,))
    (whole,) = check_nvml(devices, lambda: Nvml(FakePynvml()))
    assert (whole.state, whole.found) == ("ok", "driver 580.95.05")
    partial = FakePynvml(refused={"nvmlDeviceGetPowerUsage"})
    (less,) = check_nvml(devices, lambda: Nvml(partial))
    assert less.found == "driver 580.95.05; cuda:0 does not give power_mw"
    (unknown,) = check_nvml(
        CudaDevices(("NVIDIA H200",), "13.0", bus_ids=("0000:99:00.0",)), lambda: Nvml(partial)
    )
    assert unknown.state == "absent" and "does not find the GPU 0000:99:00.0" in unknown.found
    assert not list(check_nvml(NO_DRIVER)), "without a GPU it is not needed"


def test_doctor_without_nvml_says_how_to_get_it() -> None:
    def start() -> Nvml:
        return Nvml(FakePynvml(refused={"nvmlInit"}))

    (found,) = check_nvml(CudaDevices(("NVIDIA H200",), "13.0", bus_ids=(BUS_ID,)), start)
    assert (found.state, found.exit_code) == ("absent", 0)
    assert found.found == "NVML does not start: refused"
    assert "pip install nvidia-ml-py" in found.remedy


@pytest.mark.parametrize(
    ("line", "cuda"),
    [
        ("cuda: Optional[str] = '13.0'", "13.0"),
        ("cuda: Optional[str] = None", ""),
        ("cuda = '12.8'", "12.8"),
    ],
)
def test_doctor_without_a_device_says_how_to_avoid_the_cuda_libraries(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, cuda: str
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('doctor starts no torch')")
    (tmp_path / "torch" / "version.py").write_text(
        f"__version__ = '2.13.0'\ndebug = False\n{line}\nhip: Optional[str] = None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    # which another test may have imported into this process
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(
        doctor_checks,
        "_version",
        lambda package: {"torch": "2.13.0", "cupy-cuda13x": "14.2"}.get(package),
    )
    code, found = findings(call, monkeypatch, NO_DRIVER)
    assert code == 0 and found["torch"]["state"] == "ok"
    assert (
        f"built for CUDA {cuda}, which no device here can use" in found["torch"]["found"]
    ) == bool(cuda)
    assert (
        "--extra-index-url https://download.pytorch.org/whl/cpu 'evoengine[emulator]'"
        in found["torch"]["remedy"]
    ) == bool(cuda)


def test_doctor_without_a_driver_and_without_nvrtc_says_what_changes_without_it(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = findings(call, monkeypatch, NO_DRIVER, Toolchain(problem="no NVRTC: no libnvrtc"))
    assert code == 0 and found["compiler"]["state"] == "absent"
    assert (
        "which changes modelled times: pip install 'evoengine[emulator]'"
        in found["compiler"]["remedy"]
    )


def test_doctor_without_a_device_and_without_torch_names_the_build_for_cpus(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "_version", lambda _: None)
    _, found = findings(call, monkeypatch, NO_DRIVER)
    assert (
        found["torch"]["state"] == "missing"
        and "download.pytorch.org/whl/cpu" in found["torch"]["remedy"]
    )


def test_doctor_of_a_complete_machine_exits_with_0(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor_checks,
        "_version",
        lambda package: {"torch": "2.11.0+cu130", "cupy-cuda13x": "14.2"}.get(package),
    )
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA H200",), "13.0"))
    assert code == 0 and all(row["state"] in ("ok", "absent") for row in found.values())


def test_doctor_names_a_cupy_that_is_too_new_for_the_driver(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor_checks,
        "_version",
        lambda package: {"torch": "2.11.0+cu130", "cupy-cuda13x": "14.2"}.get(package),
    )
    code, found = findings(call, monkeypatch, CudaDevices(("NVIDIA L4",), "12.4"))
    assert code == 6 and "evoengine[cuda12]" in found["CuPy"]["remedy"]


def test_doctor_names_missing_headers_and_a_compiler_that_does_not_start(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Toolchain(problem="Traceback ...\nImportError: no cupy_backends", missing=("mma.h",))
    code, found = findings(
        call,
        monkeypatch,
        CudaDevices(("NVIDIA L4",), "13.0"),
        broken,
        clang=Toolchain(problem="no clang"),
    )
    assert code == 6 and found["emulator: clang"]["state"] == "absent"
    assert (
        "ImportError: no cupy_backends" in found["compiler"]["found"]
        and "pip install" in found["compiler"]["remedy"]
    )
    assert found["headers"]["found"] == "mma.h not found"


def test_doctor_never_shows_the_key(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:sk-secret@127.0.0.1:9/v1?key=sk-secret")
    _, found = findings(call, monkeypatch, CudaDevices(()), HEALTHY, "--connect")
    row = found["model endpoint"]
    assert "http://127.0.0.1:9/v1" in row["found"] and "cannot be reached" in row["found"]
    assert "sk-secret" not in json.dumps(found)


def test_doctor_names_a_folder_that_cannot_hold_runs(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    _, found = findings(
        call, monkeypatch, CudaDevices(()), HEALTHY, "--runs-dir", str(tmp_path / "file" / "runs")
    )
    assert (
        found["runs folder"]["state"] == "missing"
        and "--runs-dir" in found["runs folder"]["remedy"]
    )


def test_doctor_names_a_kernel_that_cannot_keep_workers_out_of_other_programs(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "has_domains", lambda: False)
    _, found = findings(call, monkeypatch, CudaDevices(()), HEALTHY)
    assert found["workers"]["state"] == "absent" and "Landlock" in found["workers"]["remedy"]
    monkeypatch.setattr(doctor_checks, "has_domains", lambda: True)
    assert "workers" not in findings(call, monkeypatch, CudaDevices(()), HEALTHY)[1]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_doctor_is_readable_at_any_width(
    call: Call, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(doctor_checks, "cuda_devices", lambda: NO_DRIVER)
    monkeypatch.setattr(doctor_checks, "_toolchain", lambda: HEALTHY)
    monkeypatch.setattr(doctor_emulator_checks, "_clang", lambda: CLANG)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = call("doctor").out.splitlines()
    assert max(map(len, lines)) <= width and all(line == line.rstrip() for line in lines)
    assert len(lines) < 80  # a column of twelve characters would take more
    assert "for a GPU: install NVIDIA's driver" in " ".join(" ".join(lines).split())


def test_doctor_reports_a_runs_folder_that_is_a_file(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "afile").write_text("")
    code, found = findings(call, monkeypatch, NO_DRIVER, HEALTHY, "--runs-dir", "afile")
    assert (
        code == 7
        and found["runs folder"]["found"] == f"afile: {tmp_path / 'afile'} is not a folder"
    )
