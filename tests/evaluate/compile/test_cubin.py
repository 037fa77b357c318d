import re
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.evaluate.compile import cubin, ptxas_log
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.nvrtc import NvrtcCompiler, load
from tests.evaluate.compile.kernels import COPY, VARIED, VARIED_KERNELS
from tests.sampling import examples


@pytest.fixture(scope="module")
def compiler() -> NvrtcCompiler:
    loaded = load()
    return NvrtcCompiler(loaded, find_headers(loaded.version).folders)


def raw(
    compiler: NvrtcCompiler, code: str, kernels: tuple[str, ...], arch: str
) -> tuple[bytes, str, dict[str, str]]:
    """The cubin, the log as it came, and the kernels' names."""
    unit = CompileUnit(code=code, arch=arch, kernels=kernels)
    program = compiler.nvrtc.createProgram(code, unit.name)
    for kernel in kernels:
        compiler.nvrtc.addNameExpression(program, kernel)
    compiler.nvrtc.compileProgram(program, compiler.options(unit, arch))
    names = {kernel: compiler.nvrtc.getLoweredName(program, kernel) for kernel in kernels}
    return compiler.nvrtc.getCUBIN(program), compiler.nvrtc.getProgramLog(program), names


@pytest.fixture(scope="module")
def whole(compiler: NvrtcCompiler) -> bytes:
    return cubin.completed(raw(compiler, VARIED, VARIED_KERNELS, "sm_90")[0])


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_90a"])
def test_cubin_and_assembler_agree_on_every_kernel(arch: str, compiler: NvrtcCompiler) -> None:
    data, log, names = raw(compiler, VARIED, VARIED_KERNELS, arch)
    facts, reports = cubin.kernels(cubin.completed(data)), ptxas_log.reports(log)
    assert set(facts) == set(reports) == set(names.values())
    for name, fact in facts.items():
        report = reports[name]
        assert fact.registers == report.registers
        assert fact.local_bytes >= report.stack_bytes
        assert fact.static_shared_bytes in (
            report.static_shared_bytes,
            report.static_shared_bytes + cubin.reserved_shared_bytes(arch),
        )
    spilling, calling = reports[names["spilling"]], facts[names["calling"]]
    assert spilling.spill_store_bytes > 0
    assert spilling.spill_load_bytes > 0
    assert reports[names["empty"]].spill_store_bytes == 0
    assert calling.local_bytes >= 400  # helper's array
    assert calling.static_shared_bytes == 800 + cubin.reserved_shared_bytes(arch)


def test_parameter_sizes_are_those_of_the_source(whole: bytes) -> None:
    facts = cubin.kernels(whole)
    mixed = next(fact for name, fact in facts.items() if "mixedILi64" in name)
    assert mixed.params == (32, 8, 4, 1, 8, 2)
    assert facts["_Z5emptyv"].params == ()
    assert facts["plain"].params == (8,)


def test_the_byte_that_the_binding_drops_is_put_back(compiler: NvrtcCompiler) -> None:
    data, _, _ = raw(compiler, COPY, ("copy",), "sm_89")
    completed = cubin.completed(data)
    offset, size, count = (
        struct.unpack_from("<Q", completed, 0x20)[0],
        *struct.unpack_from("<HH", completed, 0x36),
    )
    assert len(completed) == offset + size * count
    assert cubin.completed(completed) == completed
    assert cubin.completed(b"short") == b"short"


def test_the_code_digest_ignores_lines_and_sees_constants(compiler: NvrtcCompiler) -> None:
    def code_digest(code: str) -> str:
        return cubin.code_digest(cubin.completed(raw(compiler, code, ("copy",), "sm_89")[0]))

    assert code_digest(COPY) == code_digest("\n// a comment\n" + COPY)
    assert code_digest(COPY) != code_digest(COPY.replace("a[i]", "a[i] * 2.5f"))
    table = "__constant__ float table[4] = {1, 2, 3, 4};\n" + COPY.replace(
        "a[i]", "a[i] * table[n & 3]"
    )
    assert code_digest(table) != code_digest(table.replace("3, 4}", "3, 5}"))


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"not a cubin", bytes(4096), b"\x7fELF\x02\x01" + b"\xff" * 200]
)
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected (a cubin|section headers)"):
        cubin.kernels(data)


def test_every_truncation_is_refused(whole: bytes) -> None:
    end_of_sections = (
        struct.unpack_from("<Q", whole, 0x28)[0] + 64 * struct.unpack_from("<H", whole, 0x3C)[0]
    )
    for length in range(0, end_of_sections, 97):
        with pytest.raises(ValueError, match="expected"):
            cubin.kernels(whole[:length])


@pytest.fixture(scope="module")
def whole_file(whole: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cubin") / "whole.cubin"
    path.write_bytes(whole)
    return path


@settings(max_examples=examples(300), deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_changed_bytes_end_in_a_value_error_or_in_facts(
    changes: list[tuple[int, int]], whole_file: Path
) -> None:
    whole = whole_file.read_bytes()
    header_bytes = 64 * struct.unpack_from("<H", whole, 0x3C)[0]
    start = struct.unpack_from("<Q", whole, 0x28)[0]
    data = bytearray(whole)
    for place, value in changes:
        target = (
            place % 64
            if place % 3 == 0
            else start + place % header_bytes
            if place % 3 == 1
            else place % len(data)
        )
        data[target] = value
    try:
        cubin.kernels(bytes(data))
        cubin.code_digest(bytes(data))
    except ValueError as error:
        assert "expected" in str(error)


LASTING = r"""
__device__ int plain_one = 7; __device__ float zeroed[8];
static __device__ unsigned counter; static __device__ int first_value = 3;
__constant__ float table[4] = {1, 2, 3, 4}; static __constant__ int small_table[2] = {5, 6};
namespace deep { __device__ int inner; }
namespace { __device__ int nameless; }
template <int N> __device__ int of_template = N;
__global__ void k(int* a) {
    static int counted = 4;
    static __device__ int counted_too;
    __shared__ int shared[4];
    shared[a[1] & 3] = a[0];
    const char* text = "some text";
    printf("%d %s\\n", a[0], text);
    a[2] = counted++ + counted_too++ + plain_one++ + zeroed[a[0]]++ + counter++ + first_value++
        + table[a[3]] + small_table[a[4]] + deep::inner++ + nameless++ + of_template<11>++
        + shared[a[5] & 3] + text[a[7]];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_120"])
def test_everything_that_keeps_its_contents_has_a_symbol(
    arch: str, compiler: NvrtcCompiler
) -> None:
    data = cubin.completed(raw(compiler, LASTING, ("k",), arch)[0])
    names = cubin.variable_symbols(data)
    literals = [name for name in names if name.startswith("$str")]
    assert len(literals) == 2 and len(set(names)) == len(names)
    wanted = (
        "plain_one", "zeroed", "counter", "first_value", "table", "small_table", "inner",
        "nameless", "of_template", "counted", "counted_too",
    )  # fmt: skip
    variables = [name for name in names if name not in literals]
    assert len(variables) == len(wanted)
    for name in wanted:
        assert any(re.search(rf"(?<![a-z]){name}(?![a-z_])", found) for found in variables), name
    assert not any("shared" in name for name in names), "it has no contents between launches"


def test_a_kernel_without_variables_keeps_nothing(compiler: NvrtcCompiler) -> None:
    data = cubin.completed(raw(compiler, COPY, ("copy",), "sm_90")[0])
    assert cubin.variable_symbols(data) == ()
