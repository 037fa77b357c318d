import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.candidate.kernel_file import MAX_SOURCE_BYTES
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.includes import IncludeRefused, allowed_headers, check_includes
from evoengine.evaluate.compile.nvrtc import NvrtcCompiler, load
from tests.evaluate.compile.tricks import HARMLESS, LEAKING, OTHERS
from tests.sampling import examples

MARKER = "SECRET_TOKEN_4711"
KERNEL = "__global__ void k() {}\n"


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("private") / "secret.txt"
    path.write_text(f"{MARKER} is here\n")
    return path


@pytest.fixture(scope="module")
def compiler() -> NvrtcCompiler:
    """One that is not confined, so that the check stands alone."""
    loaded = load()
    return NvrtcCompiler(loaded, find_headers(loaded.version).folders)


def leaks(compiler: NvrtcCompiler, code: str) -> bool:
    built, cubin = compiler.compile(CompileUnit(code=code, arch="sm_80", kernels=("k",)))
    return MARKER in built.log or MARKER.encode() in cubin


def passes(code: str) -> bool:
    try:
        check_includes(code)
    except IncludeRefused:
        return False
    return True


@pytest.mark.parametrize("name", LEAKING)
def test_every_include_that_leaks_a_file_is_refused(
    name: str, secret: Path, compiler: NvrtcCompiler
) -> None:
    code = LEAKING[name].format(path=secret) + KERNEL
    assert leaks(compiler, code)  # without the check: the trick is a real one
    with pytest.raises(IncludeRefused, match=r"^kernel\.cu:\d+: .*allowed|literal #include"):
        check_includes(code)


@pytest.mark.parametrize("name", OTHERS)
def test_what_another_compiler_might_take_is_refused_too(name: str, secret: Path) -> None:
    with pytest.raises(IncludeRefused, match=r"^kernel\.cu:\d+: "):
        check_includes(OTHERS[name].format(path=secret) + KERNEL)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_passes_the_check_reads_no_file(
    name: str, secret: Path, compiler: NvrtcCompiler
) -> None:
    code = HARMLESS[name].format(path=secret) + KERNEL
    assert not (passes(code) and leaks(compiler, code))


PIECES = [
    "#",
    "%:",
    "??=",
    "include",
    "inc",
    "lude",
    "_next",
    " ",
    "\t",
    "\n",
    "\n",
    "\\\n",
    "\\ \n",
    "\\\r\n",
    "??/\n",
    "\r",
    "\f",
]
PIECES += [
    "/*",
    "*/",
    "//",
    '"',
    "'",
    'R"(',
    ')"',
    "<",
    ">",
    "{path}",
    '"{path}"',
    "<{path}>",
    '#include "{path}"',
    "#if 0",
    "#endif",
    "#else",
]
PIECES += ["#define F", " F ", "x", "\\", "##", "<stdint.h>", "0", "..", ";"]


@settings(max_examples=examples(250))
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=2, max_size=14))
def test_no_mixture_of_pieces_passes_the_check_and_reads_the_file(
    pieces: list[str], secret: Path, compiler: NvrtcCompiler
) -> None:
    code = "".join(pieces).replace("{path}", str(secret)) + "\n" + KERNEL
    assert not (passes(code) and leaks(compiler, code))


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\n\n#include <vector>\n", 3),
        ("a\\\nb\\\nc\n#inc\\\nlude </etc/passwd>\n", 4),
        ("int a;\r\n#include MACRO\r\n", 2),
        ("\n#if __has_include(<x>)\n", 2),
        ('x\n\n  # 12 "other.cu"\n', 3),
    ],
)
def test_a_refusal_names_the_line(code: str, line: int) -> None:
    with pytest.raises(IncludeRefused, match=rf"^mine\.cu:{line}: "):
        check_includes(code, "mine.cu")


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(
        IncludeRefused,
        match=re.escape("#include of 'vector' is not allowed\nallowed: ")
        + ".*cuda_fp16.h.*mma.h.*stdint.h",
    ):
        check_includes("#include <vector>\n")


def test_the_refusal_of_a_header_for_tile_code_says_where_tf32_is() -> None:
    with pytest.raises(
        IncludeRefused,
        match=r"^kernel\.cu:1: .*'cuda_tf32\.h' is not allowed: .*<mma\.h>.*precision::tf32",
    ):
        check_includes("#include <cuda_tf32.h>\n")


@pytest.mark.parametrize(
    "code",
    [
        (
            '#include <cuda_fp16.h>\n#include "mma.h"  // tensor cores\n#  include'
            " <cooperative_groups/reduce.h>\n"
        ),
        (
            "#include <cuda/std/limits>\n#include <cuda/barrier>\n#include <stdint.h>\n#include"
            " <cmath>\n"
        ),
        (
            "#define STR(x) #x\n#define CAT(a, b) a##b\n#pragma unroll 4\n#if defined(A) && A >"
            " 2\n#error no\n#endif\n"
        ),
        "// fixes #12; see # 3\nint a = 5 %3; // 100%: of it\n",
        "/* the include of a # header */ int b;",
        'asm("// #");\nconst char* format = "#%d %%";\n',
    ],
)
def test_what_kernels_do_is_allowed(code: str) -> None:
    check_includes(code)


def test_every_allowed_header_exists(compiler: NvrtcCompiler) -> None:
    if load().version < (13, 5):
        pytest.skip("older releases lack the newest of the allowed headers")
    folders = [
        Path(__file__).parents[3] / "evoengine" / "evaluate" / "compile" / "shim",
        *compiler.folders,
    ]
    missing = [
        name
        for name in allowed_headers()
        if not any((folder / name).is_file() for folder in folders)
    ]
    assert missing == []


def test_nothing_that_is_allowed_includes_through_a_macro(compiler: NvrtcCompiler) -> None:
    """CUB and Thrust do; a candidate could then choose the file by defining the macro."""
    computed = re.compile(r'^\s*#\s*include(?:_next)?\s+[^"<\s]', re.MULTILINE)
    found = []
    for folder in compiler.folders:
        for path in folder.rglob("*"):
            inside = path.relative_to(folder).as_posix()
            if (
                path.is_file()
                and not re.search(r"(^|/)(cub|thrust)/", inside)
                and computed.search(path.read_text(errors="replace"))
            ):
                found.append(inside)
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "#/*",
        "#/**/",
        "#/*#*/",
        "\n",
        "# ",
        "\\ ",
        "\\\n",
        "#/*" * 9 + "*/" * 9,
        "??/\n",
        "#include ",
        "#\t\r",
    ],
)
def test_the_largest_source_is_checked_in_linear_time(text: str) -> None:
    """The test's own time limit is what would end a quadratic one."""
    code = text * (MAX_SOURCE_BYTES // len(text))
    for source in (code, code + "*/", code + "*/\n#include <mma.h>\n"):
        passes(source)
