"""A candidate sees our headers and nothing else of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import CompileFailed
from evoengine.emulator.front import overlay
from evoengine.emulator.front.clang import compile_cuda

CONTENTS = "the contents that nobody may see"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.h"
    path.write_text(f"int x = {CONTENTS};\n")
    return path


def log_of(source: str) -> str:
    with pytest.raises(CompileFailed, match=r".") as failed:
        compile_cuda(source, name="kernel.cu", macros={}, arch="sm_89", kernels=[])
    return failed.value.log


@pytest.mark.parametrize(
    "directive",
    [
        '#include "{path}"',
        "#include <{path}>",
        "#include_next <{path}>",
        "#import <{path}>",
        '#include "../../../../../../../..{path}"',
        "#include <../../../../../../../..{path}>",
        "#include </cuda/../..{path}>",
        '#include "//{path}"',
        '#include "/proc/self/root{path}"',
        '#define H "{path}"\n#include H',
        "%:include <{path}>",
        "#inc\\\nlude <{path}>",
        '#embed "{path}"',
        '_Pragma("clang module import {path}")\n#include <{path}>',
    ],
)
def test_a_file_outside_our_headers_does_not_exist(directive: str, secret: Path) -> None:
    log = log_of(directive.replace("{path}", str(secret)))
    assert "file not found" in log
    assert CONTENTS not in log


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/dev/zero",
        "stdout",
        "file0",
        "overlay.json",
        "../file0",
    ],
)
def test_well_known_files_and_our_own_working_files_do_not_exist(path: str) -> None:
    assert "file not found" in log_of(f'#include "{path}"')


def test_the_existence_of_files_cannot_be_tested(secret: Path) -> None:
    source = "".join(
        f'#if {question}("{path}")\n#error seen {path}\n#endif\n'
        for question in ("__has_include", "__has_include_next", "__has_embed")
        for path in (secret, "/etc/passwd", "/bin/sh", "/proc/self/maps")
    )
    compile_cuda(source, name="kernel.cu", macros={}, arch="sm_89", kernels=[])


def test_pragmas_open_no_file(secret: Path) -> None:
    source = (
        f'#pragma clang module load {secret.stem}\n#pragma GCC dependency "{secret}"\n#pragma'
        f' include_alias("a", "{secret}")\n'
    )
    assert CONTENTS not in log_of(source + "#error end")


def test_incbin_is_text_in_ptx_and_reads_nothing(secret: Path) -> None:
    source = f'__global__ void f() {{ asm volatile(".incbin \\"{secret}\\";"); }}'
    compiled = compile_cuda(source, name="kernel.cu", macros={}, arch="sm_89", kernels=["f"])
    assert ".incbin" in compiled.ptx
    assert CONTENTS not in compiled.ptx


def test_environment_variables_of_compilers_are_not_passed_on(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"):
        monkeypatch.setenv(variable, str(secret.parent))
    assert "file not found" in log_of("#include <secret.h>")


def test_messages_about_our_headers_name_them_without_a_path() -> None:
    log = log_of(
        "#define float flat\n#include <cuda_fp16.h>\n__global__ void f(half* p) { *p = __hadd(1); }"
    )
    assert str(overlay.HEADERS) not in log
    assert "/cuda/" not in log


def test_a_source_cannot_pretend_to_be_an_appended_line() -> None:
    log = log_of('#line 1 "kernel expressions"\nint a = b;')
    assert "use of undeclared identifier 'b'" in log
