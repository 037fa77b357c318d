"""run/abi.py against run/native/runtime.h, by the compiler that builds the runtime."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from evoengine.emulator.front.clang import find_clang
from evoengine.emulator.run import abi, native

HEADER = Path(native.__file__).parent / "native" / "runtime.h"
STRUCTURES = {"Warp": abi.WarpRecord, "Block": abi.BlockRecord, "Launch": abi.LaunchRecord}


def compiled_numbers(expressions: list[str], folder: Path) -> list[int]:
    """The values of C constant expressions, in a file that includes the header."""
    source, output = folder / "numbers.c", folder / "numbers.s"
    items = ", ".join(f"(unsigned long long)({item})" for item in expressions)
    source.write_text(
        f'#include "{HEADER}"\nconst unsigned long long numbers[] = {{{items}, ~0ull}};\n'
    )
    command = [
        *find_clang().command,
        "-cc1",
        "-triple",
        "x86_64-unknown-linux-gnu",
        "-S",
        "-o",
        str(output),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True)
    found = [int(item) for item in re.findall(r"\.quad\s+(-?\d+)", output.read_text())]
    assert len(found) == len(expressions) + 1 and found[-1] == -1
    return found[:-1]


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_field_has_the_offset_of_the_header(name: str, tmp_path: Path) -> None:
    structure = STRUCTURES[name]
    fields = [field[0] for field in structure._fields_]
    expressions = [f"__builtin_offsetof({name}, {field})" for field in fields] + [
        f"sizeof((({name} *)0)->{field})" for field in fields
    ]
    places = [getattr(structure, field).offset for field in fields]
    sizes = [getattr(structure, field).size for field in fields]
    assert compiled_numbers([*expressions, f"sizeof({name})"], tmp_path) == [
        *places,
        *sizes,
        ctypes.sizeof(structure),
    ]


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_header_has_no_field_that_python_lacks(name: str) -> None:
    body = re.search(rf"typedef struct {name} \{{(.*?)\n\}} {name};", HEADER.read_text(), re.DOTALL)
    assert body is not None
    code = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    fields = [
        re.sub(r"\[.*", "", part).split("*")[-1].split()[-1]
        for part in code.split(";")
        if part.strip()
    ]
    assert fields == [field[0] for field in STRUCTURES[name]._fields_]


def test_constants_are_those_of_the_header(tmp_path: Path) -> None:
    ends = [
        abi.StopReason.done,
        abi.StopReason.waiting,
        abi.StopReason.trapped,
        abi.StopReason.no_fuel,
    ]
    numbers = compiled_numbers(
        ["BARRIERS", "REGISTERS_OFFSET", "DONE", "WAITING", "TRAPPED", "NO_FUEL"], tmp_path
    )
    assert numbers == [abi.BARRIERS, abi.REGISTERS_OFFSET, *map(int, ends)]
    driver = (HEADER.parent / "driver.c").read_text()
    for name, end in (
        ("FINISHED", abi.StopReason.done),
        ("FAULT_TRAP", abi.StopReason.trapped),
        ("FAULT_FUEL", abi.StopReason.no_fuel),
        ("FAULT_DEADLOCK", abi.StopReason.deadlock),
    ):
        assert re.search(rf"\b{name} = {int(end)}\b", driver), name
    guard = (HEADER.parent / "guard.c").read_text()
    assert f"STRAYED = {int(abi.StopReason.strayed)} " in guard
