"""What compiling alone finds out about a candidate, with the real compiler."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.pool import CLANG, CompilePool, CompileResult, CompileUnit
from evoengine.evaluate.compile_candidate import CandidateCompiler, CompiledCandidate
from evoengine.evaluate.tier_instructions import check_tier_instructions
from evoengine.paths import find_task
from evoengine.records import Status, Verdict
from evoengine.task.load import load_task
from tests.scale_task import kernel, load_scale_task

START = "{ y[0]"
KERNEL = 'extern "C" __global__ void scale(const float* x, float* y, long long n)'


def compiled(
    folder: Path,
    source: str,
    with_nvrtc: bool = True,
    with_clang: bool = False,
    uses: tuple[str, ...] = (),
) -> tuple[Status, str, CompiledCandidate]:
    """How far a source comes on an L4, with NVRTC and with clang for the emulator; tier fp32 asks
    for the instructions `uses`.
    """

    async def run() -> CompiledCandidate:
        nvrtc = CompilePool(1, folder / "cache") if with_nvrtc else None
        clang = CompilePool(1, folder / "ptx", module=CLANG) if with_clang else None
        try:
            task = load_scale_task(folder / "tasks")
            tier = task.tiers["fp32"].model_copy(update={"uses": uses})
            task = task.model_copy(update={"tiers": {**task.tiers, "fp32": tier}})
            compiler = CandidateCompiler(task, nvrtc, clang)
            return await compiler.compile(
                candidates.parse(source), limits_of_arch("sm_89"), lambda _: None
            )
        finally:
            for pool in (nvrtc, clang):
                if pool is not None:
                    await pool.close()

    found = asyncio.run(run())
    if found.refusal is None:
        return Status.correct, "", found
    assert found.cases == (), "a candidate that is refused has nothing to run"
    return found.refusal.status, found.refusal.reason, found


@pytest.mark.sampled("new", one_in=2)
@pytest.mark.parametrize(
    ("old", "new", "status", "says"),
    [
        (START, START, Status.correct, ""),
        (
            START,
            "{ __shared__ float tile[60000]; tile[n] = 1; y[1] = tile[n + 1]; y[0]",
            Status.over_limits,
            "uses too much shared data",
        ),
        (
            "args:",
            "shared: 300000\n    args:",
            Status.over_limits,
            "asks for 300000 bytes of shared memory in case small, sm_89 allows 101376",
        ),
        (
            "block: [BLOCK]",
            "block: [16*BLOCK]",
            Status.over_limits,
            "has 2048 threads in case small",
        ),
        (
            "args: [x, y, N]",
            "args: [x, y]",
            Status.rejected,
            "takes 3 parameters, its launch passes 2",
        ),
        ("args: [x, y, N]", "args: [x, z, N]", Status.rejected, "unknown name 'z'"),
        (
            "precision: fp32",
            "precision: fp64",
            Status.rejected,
            "no tier 'fp64' in task scale; known: fp32, fp16",
        ),
        (
            START,
            (
                "{ static __device__ float kept[20000]; kept[n + 1] = x[0]; __syncthreads(); y[1] ="
                " kept[n]; y[0]"
            ),
            Status.rejected,
            "global variables and constants take 80000 bytes, allowed are 65536",
        ),
        (
            START,
            "{ float* kept = (float*)malloc(64); kept[n] = x[1]; y[1] = kept[n / 2]; y[0]",
            Status.rejected,
            "malloc, new, free or delete (malloc), which is not allowed",
        ),
        (
            START,
            (
                "{ float hog[4200]; for (int i = 0; i < n; ++i) hog[i * 7 % 4200] = x[i];"
                " y[1] = hog[n % 4200]; y[0]"
            ),
            Status.over_limits,
            "scale takes 16800 bytes of stack a thread, allowed are 16384: the 89088 threads that fit"
            " on the device would take 1.39 GiB",
        ),
        (
            f"{KERNEL} {START}",
            (
                "__device__ __noinline__ float f(const float* a, int n) { float t[120];"
                " for (int i = 0; i < 120; ++i) t[i] = a[i * n];"
                " float r = n < 2 ? 0 : f(a, n - 1) * f(a, n - 2); return t[int(r) % 120] + r; }\n"
                f"{KERNEL} {{ y[1] = f(x, n); y[0]"
            ),
            Status.over_limits,
            "bytes of stack a thread (64 recursive calls), allowed are 16384",
        ),
        (
            START,
            ('{ asm volatile("{ .global .u32 kept; st.global.u32 [kept], 1; }"); y[0]'),
            Status.rejected,
            "inline PTX declares a variable inside of a function",
        ),
        (
            START,
            "{ free(y + n); y[0]",
            Status.rejected,
            "malloc, new, free or delete (free)",
        ),
        (
            "extern",
            "__managed__ float kept[4];\nextern",
            Status.rejected,
            "'kept' is a __managed__ variable",
        ),
        (
            "extern",
            "__constant__ float kept[10000]; static __device__ float more[9000];\nextern",
            Status.rejected,
            "global variables and constants take 76000 bytes",
        ),
        (START, "{ bug; y[0]", Status.compile_error, 'identifier "bug" is undefined'),
        (
            "extern",
            '#include "/etc/hostname"\nextern',
            Status.rejected,
            "'/etc/hostname' is not allowed",
        ),
    ],
)
def test_every_fault_that_needs_no_device_has_its_status(
    tmp_path: Path, old: str, new: str, status: Status, says: str
) -> None:
    source = kernel("scale_a")
    assert old in source
    found, reason, _ = compiled(tmp_path, source.replace(old, new, 1))
    assert (found, says in reason) == (status, True), reason


def test_a_log_that_is_not_utf8_is_a_log(tmp_path: Path) -> None:
    source = kernel("scale_a")
    found, _, candidate = compiled(
        tmp_path, source.replace("extern", '#pragma message "\\xff\\xfe"\nextern', 1)
    )
    assert found is Status.correct and candidate.cases
    source = source.replace("extern", '#pragma message "\\xff"\nextern', 1).replace(
        START, "{ bug; y[0]", 1
    )
    found, reason, _ = compiled(tmp_path, source)
    assert found is Status.compile_error and 'identifier "bug" is undefined' in reason


def test_what_no_compiler_can_be_given_ends_the_candidate_and_not_the_run(tmp_path: Path) -> None:
    """The header refuses such a name itself; this is the barrier behind it."""
    parsed = candidates.parse(kernel("scale_a"))
    bent = replace(parsed, plan=parsed.plan.model_copy(update={"name": "../x"}))

    refusal = refusal_by(CompilePool(1, tmp_path / "cache"), bent, tmp_path)
    assert refusal.status is Status.rejected
    assert re.match(
        r"the compiler cannot take its name: String should match pattern .* got '\.\./x\.cu'",
        refusal.reason,
    )


def refusal_by(nvrtc: CompilePool, candidate: candidates.Candidate, folder: Path) -> Verdict:
    async def run() -> Verdict | None:
        compiler = CandidateCompiler(load_scale_task(folder / "tasks"), nvrtc)
        found = await compiler.compile(candidate, limits_of_arch("sm_89"), lambda _: None)
        return found.refusal

    refusal = asyncio.run(run())
    assert refusal is not None
    return refusal


def test_machine_code_that_cannot_be_read_ends_the_candidate_and_not_the_run(
    tmp_path: Path,
) -> None:
    class Garbled(CompilePool):
        async def compile(self, unit: CompileUnit) -> CompileResult:
            (tmp_path / "garbled").write_bytes(b"\x7fELF")
            return CompileResult(
                status="ok", functions={"scale": "scale"}, code_path=str(tmp_path / "garbled")
            )

    garbled = Garbled(1, tmp_path / "cache")
    refusal = refusal_by(garbled, candidates.parse(kernel("scale_a")), tmp_path)
    assert refusal.status is Status.compile_error
    assert refusal.reason.startswith("its machine code cannot be read: expected a cubin")


def test_the_emulator_gets_ptx_and_nvrtc_reports_its_resources(tmp_path: Path) -> None:
    status, _, candidate = compiled(tmp_path, kernel("scale_a"), with_clang=True)
    case = candidate.cases[0]
    assert status is Status.correct
    assert f".entry {case.functions['scale']}(" in Path(case.code_path).read_text()
    assert case.resources[0].registers > 0 and candidate.resources[0].arch == "sm_89"


def test_without_nvrtc_the_emulator_has_ptx_and_no_resources(tmp_path: Path) -> None:
    status, _, candidate = compiled(tmp_path, kernel("scale_a"), with_nvrtc=False, with_clang=True)
    assert status is Status.correct and candidate.code_digest
    assert candidate.resources == () == candidate.cases[0].resources


@pytest.mark.parametrize(
    ("new", "with_nvrtc", "status", "says"),
    [
        (
            "{ y[1] = __nv_no_such_function(x[0]); y[0]",
            False,
            Status.unsupported,
            "the emulator's headers lack __nv_no_such_function",
        ),
        ("{ bug; y[0]", False, Status.compile_error, "use of undeclared identifier 'bug'"),
        ("{ bug; y[0]", True, Status.compile_error, 'identifier "bug" is undefined'),
    ],
)
def test_what_our_headers_lack_is_unsupported_and_a_fault_of_the_source_is_not(
    tmp_path: Path, new: str, with_nvrtc: bool, status: Status, says: str
) -> None:
    found, reason, _ = compiled(
        tmp_path, kernel("scale_a").replace(START, new, 1), with_nvrtc=with_nvrtc, with_clang=True
    )
    assert (found, says in reason) == (status, True), reason


def test_what_nvrtc_accepts_and_clang_does_not_is_a_lack_of_the_emulator(tmp_path: Path) -> None:
    source = kernel("scale_a").replace(
        "extern", "#ifdef __clang__\n#error not for clang\n#endif\nextern", 1
    )
    found, reason, candidate = compiled(tmp_path, source, with_clang=True)
    assert (
        found is Status.unsupported
        and reason.startswith("not for the emulator: ")
        and "not for clang" in reason
    )
    assert candidate.resources, "NVRTC has reported them"


TO_8_BITS = """{ unsigned short bits;
asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(bits) : "f"(x[0])); y[1] = bits;
y[0]"""


@pytest.mark.parametrize(
    ("with_nvrtc", "with_clang"),
    [(True, False), (True, True), (False, True)],
    ids=["machine code", "machine code and PTX", "PTX"],
)
def test_a_kernel_without_the_instructions_of_its_tier_is_rejected(
    tmp_path: Path, with_nvrtc: bool, with_clang: bool
) -> None:
    plain, narrow = kernel("scale_a"), kernel("scale_a").replace(START, TO_8_BITS, 1)
    found, reason, _ = compiled(tmp_path, plain, with_nvrtc, with_clang, ("e4m3",))
    assert found is Status.rejected
    assert reason == (
        "tier fp32 asks for e4m3 instructions, the machine code for sm_89 has none in case large"
    )
    found, reason, candidate = compiled(tmp_path, narrow, with_nvrtc, with_clang, ("e4m3",))
    assert (found, reason) == (Status.correct, "")
    if with_nvrtc:
        assert candidate.resources[0].formats == ("e4m3",)
    assert compiled(tmp_path, narrow, with_nvrtc, with_clang, ("e4m3", "f16"))[1].startswith(
        "tier fp32 asks for f16 instructions"
    )


def test_only_scored_cases_need_the_instructions(tmp_path: Path) -> None:
    """The other cases may take a more exact path."""
    task = load_scale_task(tmp_path / "tasks")
    tier = task.tiers["fp32"].model_copy(update={"uses": ("e4m3",)})
    task = task.model_copy(update={"tiers": {"fp32": tier}})
    parsed = candidates.parse(kernel("scale_a"))
    plans = [
        bind(parsed, task, case, limits_of_arch("sm_89")).model_copy(
            update={"macros": {"CASE": case}}
        )
        for case in task.all_cases
    ]
    narrow = CompileResult(status="ok", formats={"scale": ("e4m3",)})
    exact = CompileResult(status="ok", formats={"scale": ()})
    results = {plan.specialisation: narrow if plan.case == "large" else exact for plan in plans}
    check_tier_instructions(task, "fp32", plans, results, "sm_89")
    swapped = {plan.specialisation: exact if plan.case == "large" else narrow for plan in plans}
    with pytest.raises(CandidateRefused, match="has none in case large"):
        check_tier_instructions(task, "fp32", plans, swapped, "sm_89")


PACKED_ROWS = """/* evoengine
name: packed_rows
precision: fp32
let:
  PACKS: C // 128
launches:
  - kernel: "packed_rows<PACKS>"
    grid: [N]
    block: [128]
    args: [x, weight, bias, out, C, eps]
*/
template <int PACKS>
__global__ void packed_rows(
    const float* x, const float* weight, const float* bias, float* out, int C, float eps) {
    float kept[PACKS];
    for (int i = 0; i < PACKS; ++i) kept[i] = x[(long long)blockIdx.x * C + i * 128 + threadIdx.x];
    out[(long long)blockIdx.x * C + threadIdx.x] = kept[0] + weight[0] + bias[0] + eps;
}
"""


def test_what_does_not_compile_in_a_hidden_case_is_told_of_a_small_one() -> None:
    """Of the hidden one no more may be said."""

    async def run() -> Verdict | None:
        nvrtc = CompilePool(1)
        try:
            compiler = CandidateCompiler(load_task(find_task("layernorm")), nvrtc)
            found = await compiler.compile(
                candidates.parse(PACKED_ROWS), limits_of_arch("sm_90"), lambda _: None
            )
            return found.refusal
        finally:
            await nvrtc.close()

    refusal = asyncio.run(run())
    assert refusal is not None and refusal.status is Status.compile_error
    assert re.fullmatch(
        r"does not compile in a hidden case; the same for \w+ with N=41, C=81", refusal.reason
    )
    assert refusal.detail == "", "a candidate chooses what a compiler's words show"
