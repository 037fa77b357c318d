"""Keys of the environment: in no process but the engine's, and out of reach there. Real runs, real
processes, real system calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evoengine.evaluate.compile import landlock
from tests.cli.descendants import Watch
from tests.cli.prying import REFUSED
from tests.generate.chat_server import chat_server, completion

ROOT = Path(__file__).resolve().parents[2]
KEY, SECRET = "sk-canary-of-the-endpoint", "canary-of-something-else"
NOBODY = 65534
ENDS_S = 240.0

TASK = """\
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {y: {shape: [N], dtype: float32}}
cases: {small: {N: 256}}
tiers: {fp32: {atol: 1e-6, rel_rmse: 1e-6}}
objective: {cases: [small]}
baselines: {torch: scale.py:forward}
target: {arch: sm_89, registers: 72, shared: 99KiB}
seeds_from: [scale.cu]
budget: {trials: 2}
"""
KERNEL = """\
/* evoengine
name: scale
precision: fp32
tunables:
  BLOCK: [128, 64]
launches:
  - kernel: scale
    grid: ["ceil_div(N, BLOCK)"]
    block: [BLOCK]
    args: [x, y, N]
*/
extern "C" __global__ void scale(const float* x, float* y, long long n) {
    long long i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
# A reference is called in the worker, where machine code made of a candidate runs on the emulator.
PRYING = """\
import json
from pathlib import Path

from tests.cli import prying


def forward(x):
    told = Path(__file__).with_name("told.json")
    if not told.exists():
        told.write_text(json.dumps(prying.report()))
    return 2 * x
"""
# Stands for the shell or the script that somebody starts the engine from: the key is in its
# environment as well.
SHELL = (
    "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', 'evoengine',"
    " *sys.argv[1:]]).returncode)"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user can have; pytest's own are root's alone."""
    path = Path(tempfile.mkdtemp(prefix="evoengine-keys-"))
    (path / "scale.yaml").write_text(TASK)
    (path / "scale.cu").write_text(KERNEL)
    (path / "scale.py").write_text(PRYING)
    yield path
    shutil.rmtree(path)


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    ours = {
        "PYTHONPATH": str(ROOT),
        "EVOENGINE_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return {
        **kept,
        **ours,
        "OPENAI_API_KEY": KEY,
        "SECRET_TOKEN": SECRET,
        "HTTPS_PROXY": f"http://me:{SECRET}@127.0.0.1:9",
        **more,
    }


async def watched(folder: Path, *arguments: str, user: int | None = None, **more: str) -> Watch:
    """A whole run on the emulator, looked at until it ended."""
    command = [
        sys.executable,
        "-c",
        SHELL,
        "run",
        str(folder / "scale.yaml"),
        "--run",
        "one",
        "--device",
        "emulator",
        *arguments,
    ]
    running = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(folder, **more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        start_new_session=True,
    )
    watch = Watch(running.pid, (KEY.encode(), SECRET.encode()))
    ending = asyncio.create_task(running.communicate())
    try:
        async with asyncio.timeout(ENDS_S):
            while not ending.done():
                await asyncio.to_thread(watch.look)
                await asyncio.sleep(0.002)
    finally:
        if not ending.done():
            os.killpg(running.pid, signal.SIGKILL)
        said, _ = await ending
    assert running.returncode == 0, said.decode()
    return watch


def assert_kept(watch: Watch, folder: Path) -> None:
    assert watch.looks > 50
    assert set(watch.roles) >= {"fork server", "worker", "NVRTC", "clang's parent", "maker of code"}
    assert not watch.leaks and not watch.privileged
    told = json.loads((folder / "told.json").read_text())
    assert str(watch.engine) in told and str(watch.pid) in told
    assert not open_ways(told[str(watch.engine)])
    if landlock.has_domains():  # the fork server, and the shell that the key was typed into
        assert not {pid: open_ways(ways) for pid, ways in told.items() if open_ways(ways)}


def open_ways(ways: dict[str, str]) -> dict[str, str]:
    assert len(ways) == 24
    return {name: found for name, found in ways.items() if found not in REFUSED}


@pytest.mark.timeout(ENDS_S + 60)
def test_no_process_of_a_run_of_the_tuner_has_a_key_or_gets_at_the_engines(folder: Path) -> None:
    assert_kept(asyncio.run(watched(folder, "--generator", "tune")), folder)


@pytest.mark.timeout(ENDS_S + 60)
def test_no_process_of_a_run_with_a_model_has_a_key_or_gets_at_the_engines(folder: Path) -> None:
    async def run() -> None:
        async with chat_server(
            completion(f"```cuda\n{KERNEL.replace('2 * x', 'x[i] + x')}```")
        ) as server:
            watch = await watched(
                folder, "--generator", "openai", "--model", "home-made", OPENAI_BASE_URL=server.url
            )
            assert server.keys and set(server.keys) == {KEY}
        assert_kept(watch, folder)

    asyncio.run(run())


def test_doctor_still_sees_that_a_key_is_set(folder: Path) -> None:
    command = [sys.executable, "-m", "evoengine", "doctor", "--json"]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    (row,) = [row for row in json.loads(done.stdout) if row["name"] == "model endpoint"]
    assert "a key is set" in row["found"] and KEY not in done.stdout + done.stderr


def can_run_as(user: int) -> bool:
    """Whether an ordinary user can start this Python with this checkout."""
    if os.geteuid() != 0:
        return False

    command = [sys.executable, "-c", "import torch, evoengine.search.start_run, tests.cli.prying"]
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            user=user,
            group=user,
            extra_groups=[],
        )
    except PermissionError:
        return False
    return done.returncode == 0


@pytest.mark.timeout(ENDS_S + 60)
def test_the_same_holds_for_an_ordinary_user(folder: Path) -> None:
    if not can_run_as(NOBODY):
        pytest.skip("needs to be root, and a Python and a checkout that every user can read")
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder)}
    assert_kept(asyncio.run(watched(folder, "--generator", "tune", user=NOBODY, **home)), folder)
