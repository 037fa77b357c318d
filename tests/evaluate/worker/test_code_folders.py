"""Where the grader lets torch and Triton keep code, and that a runner is not given the place."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.errors import DeviceError, WorkerError
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.worker import cuda_worker
from evoengine.evaluate.worker.code_folders import forget_code_folders, use_code_folder
from tests.scale_task import load_scale_task

TORCH, TRITON = "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"


def test_torch_keeps_its_code_there(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        " from evoengine.evaluate.worker.code_folders import use_code_folder;"
        " use_code_folder(Path('code'));"  # a relative path, as EVOENGINE_CACHE_DIR may be
        " from torch._inductor.codecache import cache_dir; print(cache_dir())"
    )
    environ = {name: value for name, value in os.environ.items() if name not in (TORCH, TRITON)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.stdout.strip() == str(tmp_path / "code" / "inductor"), done.stderr
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_the_user_chose_stays(tmp_path: Path) -> None:
    environ = {TORCH: "/chosen"}
    use_code_folder(tmp_path / "code", environ)
    assert environ == {TORCH: "/chosen", TRITON: str(tmp_path / "code" / "triton")}
    both = {TORCH: "/chosen", TRITON: "/too"}
    use_code_folder(tmp_path / "unused", both)
    assert both == {TORCH: "/chosen", TRITON: "/too"} and not (tmp_path / "unused").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code").chmod(mode)
    environ: dict[str, str] = {}
    with pytest.raises(DeviceError, match=rf"can be written by other users .*mode {mode:o}"):
        use_code_folder(tmp_path / "code", environ)
    assert environ == {}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match=r"cannot be kept in .*/file/code.*EVOENGINE_CACHE_DIR"):
        use_code_folder(tmp_path / "file" / "code", {})


def test_a_process_that_runs_candidates_forgets_the_folders() -> None:
    environ = {TORCH: "/chosen", TRITON: "/too", "PATH": "/bin"}
    forget_code_folders(environ)
    assert environ == {"PATH": "/bin"}


def test_a_runner_forgets_the_folders_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setenv(TORCH, "/chosen")
    monkeypatch.setattr(
        cuda_worker.runner_loop, "serve", lambda *_: seen.extend({TORCH, TRITON} & {*os.environ})
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cuda_worker.serve_runner(theirs, ["0"])
    assert seen == [] and TORCH not in os.environ


@pytest.mark.skipif(bool(cuda_devices().names), reason="without a GPU, the grader ends here")
def test_a_grader_prepares_the_folder_before_it_starts_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (TORCH, TRITON):
        monkeypatch.delenv(name, raising=False)

    async def started() -> None:
        device = cuda_device(0, tmp_path / "code")
        try:
            # torch's build for CPUs fails in words of its own
            with pytest.raises((DeviceError, WorkerError), match=r"cuda:0 cannot|_cuda_setDevice"):
                await device.start(load_scale_task(tmp_path), str(tmp_path / "scale.yaml"))
        finally:
            await device.close()

    asyncio.run(started())
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o700
