from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.compile.cache_lock import CacheLock
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from tests.cli.conftest import Call

DIGEST = "0123456789abcdef" * 2
OLD_DAYS = 40


def write(path: Path, size: int, days: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with 13 files of ours, 4 of them old, and 5 files of somebody else."""
    folder = tmp_path / "cache"
    write(folder / "cubins" / "01" / f"{DIGEST}.json", 100, OLD_DAYS)
    write(folder / "cubins" / "01" / f"{DIGEST}.cubin", 1000, OLD_DAYS)
    write(folder / "cubins" / "02" / f"{DIGEST}.json", 10)
    write(folder / "ptx" / "01" / f"{DIGEST}.ptx", 20)
    write(folder / "emulator" / f"native-{DIGEST}.o", 4)
    write(folder / "emulator" / f"native-{DIGEST}.names", 1)
    write(folder / "headers" / "13.3" / "include" / "cuda_fp16.h", 30)
    write(folder / "answers" / f"{DIGEST}.json", 5)
    write(folder / "answers" / f"{DIGEST}.out.npy", 2000, OLD_DAYS)
    write(folder / "audits" / f"{DIGEST}.json", 6)
    write(folder / "baselines" / f"{DIGEST}.json", 8)
    write(folder / "baseline-code" / "inductor" / "ab" / "cabc.py", 40)
    write(folder / "baseline-code" / "triton" / "XYZ" / "triton_mm.cubin", 50, OLD_DAYS)
    write(folder / "baseline-code" / "notes.py", 7, OLD_DAYS)
    write(folder / "baselines" / "results.json", 7, OLD_DAYS)
    write(folder / "answers" / "thesis.txt", 7, OLD_DAYS)
    write(folder / "ptx" / "photo.jpg", 7, OLD_DAYS)
    write(folder / "diary.txt", 7, OLD_DAYS)
    return folder


def asked(call: Call, *arguments: str) -> dict[str, dict[str, Any]]:
    found = call("cache", *arguments, "--json")
    assert found.code == 0, found.err
    return {row["kind"]: row for row in json.loads(found.out)["kinds"]}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_cache_shows_files_and_bytes_by_kind(call: Call, cache: Path) -> None:
    rows = asked(call)
    sizes = {kind: (row["files"], row["bytes"]) for kind, row in rows.items()}
    assert sizes == {
        "cubins": (3, 1110),
        "ptx": (1, 20),
        "emulator": (2, 5),
        "headers": (1, 30),
        "answers": (2, 2005),
        "audits": (1, 6),
        "baselines": (1, 8),
        "baseline-code": (2, 90),
    }
    text = call("cache").out
    assert str(cache) in text and "total" in text and "3.2 KiB" in text and "freed" not in text


def test_prune_by_days_removes_older_files_and_reports_what_was_freed(
    call: Call, cache: Path
) -> None:
    rows = asked(call, "--prune", "30")
    freed = {kind: (row["freed_files"], row["freed_bytes"]) for kind, row in rows.items()}
    assert freed == {
        "cubins": (2, 1100),
        "ptx": (0, 0),
        "emulator": (0, 0),
        "headers": (0, 0),
        "answers": (1, 2000),
        "audits": (0, 0),
        "baselines": (0, 0),
        "baseline-code": (1, 50),
    }
    assert (rows["cubins"]["files"], rows["cubins"]["bytes"]) == (1, 10)
    assert not (cache / "cubins" / "01").exists() and (cache / "cubins" / "02").is_dir()
    code = cache / "baseline-code"
    assert not (code / "triton").exists() and (code / "inductor" / "ab").is_dir()


def test_prune_all_leaves_what_is_not_ours(call: Call, cache: Path) -> None:
    found = call("cache", "--prune", "all")
    assert found.code == 0 and "freed" in found.out and "3.2 KiB" in found.out
    assert files(cache) == {
        "answers/thesis.txt",
        "baseline-code/notes.py",
        "baselines/results.json",
        "ptx/photo.jpg",
        "diary.txt",
        "in-use.lock",
    }


def test_prune_follows_no_link(call: Call, cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = [
        write(outside / "headers" / "13.3" / "cuda.h", 9, OLD_DAYS),
        write(outside / "ptx" / f"{DIGEST}.json", 9, OLD_DAYS),
    ]
    (cache / "headers" / "13.3" / "more").symlink_to(outside / "headers" / "13.3")
    (cache / "ptx" / "05").symlink_to(outside / "ptx")
    (cache / "answers").rename(tmp_path / "elsewhere")
    (cache / "answers").symlink_to(tmp_path / "elsewhere")
    rows = asked(call, "--prune", "all")
    assert all(path.is_file() for path in kept)
    assert (
        rows["answers"]["link"] == str(tmp_path / "elsewhere")
        and rows["answers"]["freed_files"] == 0
    )
    assert len(files(tmp_path / "elsewhere")) == 3
    assert "not followed" in call("cache").out


def test_prune_leaves_code_alone_while_a_run_is_live(call: Call, cache: Path) -> None:
    live = CacheLock.shared(cache)
    try:
        found = call("cache", "--prune", "all", "--json")
        rows = {row["kind"]: row for row in json.loads(found.out)["kinds"]}
        assert found.code == 0 and "a run is live" in found.err and json.loads(found.out)["in_use"]
        assert [
            rows[kind]["files"]
            for kind in (
                *("cubins", "ptx", "emulator", "headers", "answers"),
                *("baselines", "baseline-code"),
            )
        ] == [3, 1, 2, 1, 0, 0, 2]
    finally:
        live.release()
    assert sum(row["files"] for row in asked(call, "--prune", "all").values()) == 0


def test_a_compile_pool_holds_the_cache_until_it_is_closed(call: Call, tmp_path: Path) -> None:
    async def compiled() -> None:
        pool = CompilePool(1, module=CLANG)
        try:
            unit = CompileUnit(code="__global__ void f() {}", arch="sm_80", kernels=("f",))
            assert (await pool.compile(unit)).status == "ok"
            assert asked(call, "--prune", "all")["ptx"]["files"] == 2
        finally:
            await pool.close()

    asyncio.run(compiled())
    assert asked(call, "--prune", "all")["ptx"]["freed_files"] == 2


def test_a_missing_cache_is_empty_and_is_not_created(call: Call, tmp_path: Path) -> None:
    assert sum(row["files"] for row in asked(call, "--prune", "all").values()) == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "week", ""])
def test_prune_without_a_number_of_days_is_refused(call: Call, text: str) -> None:
    found = call("cache", f"--prune={text}")
    assert found.code == 2 and f"expected --prune DAYS or --prune all, got {text!r}" in found.err
