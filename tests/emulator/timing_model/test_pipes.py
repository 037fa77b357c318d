"""The rules that map PTX to pipes."""

from __future__ import annotations

import pytest

from evoengine.emulator.timing_model.pipes import DELAYS, PIPES, classify


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    op, *modifiers = text.split(".")
    return op, tuple(modifiers)


@pytest.mark.parametrize(
    ("instruction", "pipe", "count"),
    [
        ("fma.rn.f32", "fma", 1),
        ("mul.ftz.f32", "fma", 1),
        ("add.s32", "either", 1),
        ("min.s32", "alu", 1),
        ("and.b64", "alu", 2),
        ("mad.lo.s32", "imad", 1),
        ("mul.wide.u32", "imad", 2),
        ("mul.lo.s64", "imad", 4),
        ("setp.lt.f32", "alu", 1),
        ("selp.b32", "alu", 1),
        ("max.f32", "alu", 1),
        ("max.f16x2", "half", 1),
        ("fma.rn.f16x2", "half", 1),
        ("fma.rn.f64", "fp64", 1),
        ("setp.gt.f64", "fp64", 1),
        ("ex2.approx.ftz.f32", "mufu", 1),
        ("popc.b32", "mufu", 1),
        ("match.any.sync.b32", "mufu", 36),
        ("match.all.sync.b32", "mufu", 2),
        ("cvt.rn.f32.s32", "alu", 1),
        ("cvt.rzi.s32.f32", "mufu", 1),
        ("cvt.f32.f16", "half", 1),
        ("cvt.rn.f16.f32", "alu", 1),
        ("cvt.rn.f16x2.e4m3x2", "alu", 1),
        ("cvt.s64.s32", "alu", 1),
        ("shfl.sync.bfly.b32", "shuffle", 1),
        ("bar.sync", "barrier", 1),
        ("ld.shared.v4.f32", "lsu", 1),
        ("st.global.f32", "lsu", 1),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "lsu", 1),
        ("cp.async.cg.shared.global", "lsu", 1),
        ("cp.async.wait_group", "control", 1),
        ("bra.uni", "control", 1),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "lsu", 1),
        ("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", "lsu", 4),
    ],
)
def test_an_instruction_is_that_of_one_pipe(instruction: str, pipe: str, count: float) -> None:
    assert classify(*_split(instruction)).pipes == ((pipe, count),)


@pytest.mark.parametrize(
    "instruction",
    [
        "mov.b32",
        "cvta.to.global.u64",
        "ld.param.u64",
        "ld.const.f32",
        "neg.f32",
        "cvt.u64.u32",
        "cvt.u32.u64",
    ],
)
def test_instructions_that_machine_code_lacks_are_free(instruction: str) -> None:
    cost = classify(*_split(instruction))
    assert cost.issues == 0
    assert cost.delay is None


@pytest.mark.parametrize(
    ("instruction", "kind", "flops", "instructions"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f16", 4096, 1),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "f16", 2048, 1),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", 4096, 1),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", 2048, 1),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "fp8", 8192, 1),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "int8", 8192, 1),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "f16", 8192, 2),
        ("wmma.mma.sync.aligned.row.col.m32n8k16.f16.f16", "f16", 8192, 2),
    ],
)
def test_tensor_instructions_have_operation_counts(
    instruction: str, kind: str, flops: float, instructions: float
) -> None:
    cost = classify(*_split(instruction))
    assert (cost.tensor_kind, cost.tensor_flops, cost.pipes) == (
        kind,
        flops,
        (("tensor", instructions),),
    )


@pytest.mark.parametrize(
    ("space", "delay"), [("", "shared"), (".shared", "shared"), (".global", "global")]
)
def test_a_fragment_of_no_named_space_comes_from_shared_memory(space: str, delay: str) -> None:
    assert classify(*_split(f"wmma.load.a.sync.aligned.row.m16n16k16{space}.f16")).delay == delay


@pytest.mark.parametrize("space", ["local", "global", "shared"])
def test_a_load_waits_as_long_as_its_space_takes_and_a_store_for_nothing(space: str) -> None:
    assert classify("ld", (space, "f32")).delay == space
    assert classify("st", (space, "f32")).delay is None


def test_exactness_costs_instructions() -> None:
    fast, scaled = classify("ex2", ("approx", "ftz", "f32")), classify("ex2", ("approx", "f32"))
    division, approximate = classify("div", ("rn", "f32")), classify("div", ("approx", "f32"))
    assert fast.issues < scaled.issues < division.issues
    assert approximate.issues < division.issues
    assert classify("div", ("s32",)).issues < classify("div", ("s64",)).issues


@pytest.mark.parametrize(
    "instruction",
    [
        "frobnicate.b32",
        "lop3.b32",
        "mma.sync",
        "cvt.rn",
        "dp4a.s32.s32",
        "tanh.approx.f32",
        "rcp.rn.f64",
    ],
)
def test_every_instruction_has_a_known_pipe_and_delay(instruction: str) -> None:
    cost = classify(*_split(instruction))
    assert {pipe for pipe, _ in cost.pipes} <= set(PIPES)
    assert cost.delay is None or cost.delay in DELAYS


@pytest.mark.parametrize(
    ("instruction", "wavefronts", "sectors"),
    [
        ("ld.shared.f32", 1, 0),
        ("ld.shared.b16", 1, 0),
        ("st.shared.v4.f32", 4, 0),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, 0),
        ("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", 1, 0),
        ("cp.async.cg.shared.global", 4, 16),
        ("ld.global.nc.v2.b32", 0, 8),
        ("st.global.b16", 0, 2),
        ("ld.local.b32", 0, 0),
        ("fma.rn.f32", 0, 0),
    ],
)
def test_memory_instructions_have_minimal_traffic(
    instruction: str, wavefronts: float, sectors: float
) -> None:
    cost = classify(*_split(instruction))
    assert (cost.wavefronts, cost.sectors) == (wavefronts, sectors)
