"""The token of a GPU: between real processes, one of which is really killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evoengine.evaluate.worker.cuda.harness import gpu_token
from evoengine.evaluate.worker.cuda.harness.gpu_token import GpuToken

WAIT_S = 0.3
# A process that takes the token of GPU argv[1], says so, and holds it until its input ends.
HOLDER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from evoengine.evaluate.worker.cuda.harness import gpu_token
gpu_token.FOLDER = Path(sys.argv[2])
name = SimpleNamespace(deviceGetPCIBusId=lambda _: sys.argv[1])
gpu_token.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=name))
with gpu_token.GpuToken(0).held():
    print("held", flush=True)
    sys.stdin.read()
print("given back", flush=True)
"""
Hold = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """Starts a process that takes the token of a GPU."""

    folder = tmp_path / "of all"
    folder.mkdir()

    def start(gpu: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", HOLDER, gpu, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": tempfile.mkdtemp(dir=tmp_path)},  # its own
        )

    return start


def says(process: subprocess.Popen[str]) -> str:
    """Its next line."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_silent(process: subprocess.Popen[str]) -> bool:
    """Whether it says nothing for a while."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    time.sleep(WAIT_S)
    found = process.stdout.readline()
    os.set_blocking(process.stdout.fileno(), True)
    return not found


def test_two_processes_never_hold_the_token_of_one_gpu_together(hold: Hold) -> None:
    with hold("0000:01:00.0") as first, hold("0000:02:00.0") as other_gpu:
        assert says(first) == says(other_gpu) == "held"
        with hold("0000:01:00.0") as second:
            time.sleep(1.0)  # it imports CuPy
            assert is_silent(second)
            first.stdin.close()
            assert (says(first), says(second)) == ("given back", "held")
            second.stdin.close()
        other_gpu.stdin.close()


def test_the_token_of_a_process_that_is_killed_is_free(hold: Hold) -> None:
    with hold("0000:01:00.0") as first:
        assert says(first) == "held"
        with hold("0000:01:00.0") as second:
            assert is_silent(second)
            first.kill()
            assert says(second) == "held"
            second.stdin.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = SimpleNamespace(deviceGetPCIBusId=lambda number: f"0000:0{number}:00.0")
    monkeypatch.setattr(gpu_token, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=name)))
    monkeypatch.setattr(gpu_token, "FOLDER", tmp_path)


def test_an_error_gives_the_token_back(here: None) -> None:
    first, second = GpuToken(0), GpuToken(0)
    with pytest.raises(ValueError, match="wrong"), first.held():
        raise ValueError("wrong")
    with second.held():
        pass


def test_who_waits_comes_before_who_has_just_given_it_back(here: None) -> None:
    """A run that judges without a pause would else keep another one from ever beginning."""
    ours, theirs, order = GpuToken(0), GpuToken(0), list[str]()

    def wait() -> None:
        with theirs.held():
            order.append("waited")

    for _ in range(5):
        order.clear()
        waiting = threading.Thread(target=wait)
        with ours.held():
            waiting.start()
            time.sleep(0.1)
        with ours.held():
            order.append("again")
        waiting.join()
        assert order == ["waited", "again"]


def test_who_waits_gets_the_token_when_it_is_offered_and_the_holder_has_it_again(
    here: None,
) -> None:
    ours, theirs, order = GpuToken(0), GpuToken(0), list[str]()

    def wait() -> None:
        with theirs.held():
            order.append("they began")
            time.sleep(0.1)
            order.append("they ended")

    with ours.held():
        assert not ours.is_wanted
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        assert ours.is_wanted and not order
        ours.offer()
        order.append("we went on")
        assert not ours.is_wanted
        waiting.join()
    assert order == ["they began", "they ended", "we went on"]


def test_an_offer_that_nobody_takes_keeps_the_token(here: None) -> None:
    ours, theirs, order = GpuToken(0), GpuToken(0), list[str]()

    def wait() -> None:
        with theirs.held():
            order.append("they")

    with ours.held():
        ours.offer()
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        order.append("we")
    waiting.join()
    assert order == ["we", "they"]


def test_the_file_is_its_users_own_and_no_link_is_followed(here: None, tmp_path: Path) -> None:
    GpuToken(1)
    path, *others = sorted(tmp_path.iterdir())
    assert path.name == f"evoengine-gpu-{os.getuid()}-0000-01-00.0.lock"
    assert {one.stat().st_mode & 0o777 for one in (path, *others)} == {0o600}
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        GpuToken(1)


def test_work_that_is_not_timed_shares_the_gpu_and_waits_for_who_holds_it(here: None) -> None:
    first, second, third, order = GpuToken(0), GpuToken(0), GpuToken(0), list[str]()

    def use_it_alone() -> None:
        with third.held():
            order.append("alone")

    waiting = threading.Thread(target=use_it_alone)
    with first.shared(), second.shared():
        waiting.start()
        time.sleep(0.1)
        order.append("shared")
    waiting.join()
    assert order == ["shared", "alone"]


def test_starts_are_counted_and_not_known_while_one_is_under_way(here: None) -> None:
    ours, theirs = GpuToken(0), GpuToken(0)
    assert ours.starts() == 0
    with theirs.starting():
        assert ours.starts() is None
        with theirs.starting():
            pass
        assert ours.starts() is None, "the outer one goes on"
    assert ours.starts() == theirs.starts() == 1


def test_memory_that_a_process_takes_and_counts_is_news_to_others_alone(here: None) -> None:
    ours, theirs = GpuToken(0), GpuToken(0)
    with ours.taking_memory():
        assert theirs.starts() is None
    assert (ours.starts(), theirs.starts()) == (0, 1)
    with ours.starting(), ours.taking_memory():
        pass
    assert (ours.starts(), theirs.starts()) == (1, 2)
