"""native.py: compiled files are cached, damaged entries are compiled again, and every declared
function exists.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.run import native
from evoengine.emulator.run.jit import cache_home
from tests.emulator.run.native_lanes import Runtime, host_features


def small_runtime(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = "int ev_seven(void) { return 7; }"
) -> Path:
    """A runtime of one header and one file, in place of the real one."""
    (folder / "one.h").write_text("int ev_seven(void);\n")
    (folder / "one.c").write_text('#include "one.h"\n' + source)
    monkeypatch.setattr(native, "EMULATOR", folder)
    monkeypatch.setattr(native, "FOLDERS", (folder,))
    return folder / "cache"


def load(cache: Path) -> native.NativeRuntime:
    return native.load_runtime(llvm.get_host_cpu_name(), host_features(()), cache)


def test_a_second_load_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = small_runtime(tmp_path, monkeypatch)
    load(cache)
    monkeypatch.setattr(native._Build, "_run", lambda *_: pytest.fail("started the compiler"))
    assert load(cache).address("ev_seven")


def test_a_damaged_entry_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = small_runtime(tmp_path, monkeypatch)
    load(cache)
    for entry in cache.iterdir():
        entry.write_bytes(entry.read_bytes()[:-5])
    assert load(cache).address("ev_seven")
    assert all(native._read_checked(entry) for entry in cache.iterdir())


def test_a_changed_source_or_feature_is_another_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = small_runtime(tmp_path, monkeypatch)
    load(cache)
    before = set(cache.iterdir())
    small_runtime(tmp_path, monkeypatch, "int ev_seven(void) { return 8 - 1; }")
    load(cache)
    # every x86 of the last ten years has fma; not all have avx512
    without = host_features(("avx512", "avx10", "amx", "fma"))
    native.load_runtime(llvm.get_host_cpu_name(), without, cache)
    assert len(set(cache.iterdir()) - before) >= 2


def test_nothing_but_whole_entries_is_left_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = small_runtime(tmp_path, monkeypatch)
    load(cache)
    assert {entry.suffix for entry in cache.iterdir()} == {".o", ".names"}


def test_a_source_that_does_not_compile_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = small_runtime(tmp_path, monkeypatch, "int ev_seven(void) { return x; }")
    with pytest.raises(
        EmulatorError, match=r"one\.c:2:\d+: error: use of undeclared identifier 'x'"
    ):
        load(cache)


def test_a_declared_function_without_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = small_runtime(tmp_path, monkeypatch, "")
    with pytest.raises(EmulatorError, match=r"in no C file: .*ev_seven"):
        load(cache)


def test_an_unknown_name_is_refused_with_the_header_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError, match=r"no function ev_eight; .*lanes\.h"):
        load(small_runtime(tmp_path, monkeypatch)).address("ev_eight")


def test_a_call_that_nothing_answers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source = "int ev_eight(void);\nint ev_seven(void) { return ev_eight() - 1; }"
    cache = small_runtime(tmp_path, monkeypatch, source)
    with pytest.raises(EmulatorError, match=r"in no C file: .*ev_seven"):
        load(cache)
    assert "ev_eight" in capfd.readouterr().err


SCATTERED = """
import ctypes, mmap, random, sys
from pathlib import Path
from evoengine.emulator.run import native

cpu, features, cache = sys.argv[1:]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
NO_ACCESS, UNRESERVED = 0, 0x4000

def taken(size):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | UNRESERVED
    return libc.mmap(None, size, NO_ACCESS, flags, -1, 0)

draw, kept = random.Random(1), []
for _ in range(60):
    small = [(taken(size), size) for size in draw.choices(range(4096, 409600, 4096), k=40)]
    taken(3 << 30)
    for address, size in draw.sample(small, 20):
        libc.munmap(address, size)
    kept.append(native.load_runtime(cpu, features, Path(cache)))
print(len(kept), "linked")
"""


def test_the_runtime_links_where_free_addresses_lie_far_apart() -> None:
    """Sections of one object more than 2 GiB apart do not reach each other."""
    assert Runtime("whole").native  # compiled by one process of a run
    arguments = [llvm.get_host_cpu_name(), host_features(()), str(cache_home())]
    command = [sys.executable, "-c", SCATTERED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "60 linked\n"), done.stderr


def test_the_c_files_compile_without_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = tuple(flag for flag in native.FLAGS if flag != "-w")
    monkeypatch.setattr(native, "FLAGS", ("-Wall", "-Wextra", "-Werror", "-Wno-psabi", *strict))
    host = native.CodeTarget(llvm.get_default_triple(), llvm.get_host_cpu_name(), host_features(()))
    build = native._Build(host, tmp_path)
    for source in (native.EMULATOR / "run" / "native").glob("*.c"):
        build.compiled(source)


@pytest.mark.parametrize(("architecture", "cpu"), [("x86_64", "x86-64"), ("aarch64", "generic")])
def test_the_driver_compiles_for_every_host(tmp_path: Path, architecture: str, cpu: str) -> None:
    host = native.CodeTarget(f"{architecture}-unknown-linux-gnu", cpu, "")
    build = native._Build(host, tmp_path)
    for name in ("driver.c", "guard.c"):
        assert build.compiled(native.EMULATOR / "run" / "native" / name)


def test_lanes_h_has_a_header_for_every_file() -> None:
    folder = native.EMULATOR / "run" / "native"
    named = set(re.findall(r"^/\* ---- (\w+\.c)", (folder / "lanes.h").read_text(), re.MULTILINE))
    assert named == {path.name for path in folder.glob("*.c")} - {"driver.c", "guard.c"}
