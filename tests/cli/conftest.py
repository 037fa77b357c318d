from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from evoengine.cli.main import answer
from tests.cli.scripted_main import pretend
from tests.scale_task import write_task


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks")


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """The command line in this process, in an empty folder, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path / "cache"))

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = answer([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        return Answer(code, streams.out, streams.err)

    return run


@pytest.fixture
def scripted(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same with a pretended device."""
    pretend(monkeypatch.setattr)
    return call


@pytest.fixture
def emulated(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same with a pretended emulator."""
    pretend(monkeypatch.setattr, modelled=True)
    return call
