"""native.py: compiled files are cached, damaged entries are compiled again, and every declared
function exists.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.run import native
from tests.emulator.run.native_lanes import VARIANTS, Runtime, host_features


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
    with pytest.raises(EmulatorError, match="in no C file: ev_seven"):
        load(cache)


def test_an_unknown_name_is_refused_with_the_header_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError, match=r"no function ev_eight; .*lanes\.h"):
        load(small_runtime(tmp_path, monkeypatch)).address("ev_eight")


def symbols_of(data: bytes, defined: bool) -> set[str]:
    """Names that an ELF object defines, or wants from elsewhere (System V ABI, chapter 4)."""
    offset, size, count = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HH", data, 58),
    )
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]
    names: set[str] = set()
    for table in (section for section in sections if section[1] == 2):  # SHT_SYMTAB
        strings = sections[table[6]][4]
        for at in range(table[4], table[4] + table[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", data, at)
            if bool(section) == defined and name:
                names.add(data[strings + name : data.index(b"\0", strings + name)].decode())
    return names


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_call_out_of_the_runtime_is_resolved(variant: str) -> None:
    """MCJIT leaves a call that it cannot resolve at address 0, and says nothing."""
    from evoengine.emulator.run.jit import cache_home

    Runtime(variant)  # loads libm
    host = native.CodeTarget(
        llvm.get_default_triple(), llvm.get_host_cpu_name(), host_features(VARIANTS[variant])
    )
    build = native._Build(host, cache_home())
    objects = [build.compiled(source) for source in native._files("*.c")]
    if objects[0][:4] != b"\x7fELF":
        pytest.skip("not ELF")
    wanted = {name for data in objects for name in symbols_of(data, False)} - {
        "_GLOBAL_OFFSET_TABLE_"
    }
    wanted -= {name for data in objects for name in symbols_of(data, True)}
    assert {"sinf", "cosf"} <= wanted
    assert not {name for name in wanted if not llvm.address_of_symbol(name)}


def test_the_c_files_compile_without_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = tuple(flag for flag in native.FLAGS if flag != "-w")
    monkeypatch.setattr(native, "FLAGS", ("-Wall", "-Wextra", "-Werror", "-Wno-psabi", *strict))
    host = native.CodeTarget(llvm.get_default_triple(), llvm.get_host_cpu_name(), host_features(()))
    build = native._Build(host, tmp_path)
    for source in (native.EMULATOR / "run" / "native").glob("*.c"):
        build.compiled(source)


def test_lanes_h_has_a_header_for_every_file() -> None:
    folder = native.EMULATOR / "run" / "native"
    named = set(re.findall(r"^/\* ---- (\w+\.c)", (folder / "lanes.h").read_text(), re.MULTILINE))
    assert named == {path.name for path in folder.glob("*.c")} - {"driver.c"}
