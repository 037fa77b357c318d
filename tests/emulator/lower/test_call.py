"""Calls of functions that PTX only declares: math, printf, assert."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import OutOfFuel, Trapped, Unsupported
from evoengine.emulator.front.externals import EXTERNALS
from evoengine.emulator.run.printing import LIMIT_CHARACTERS, RECORD_CHARACTERS, DevicePrinter
from tests.emulator.lower.small_kernels import run

X = np.linspace(0.25, 4.0, 32)
PTX_TYPE = {"f32": "b32", "f64": "b64", "s32": "b32"}


def _declared(name: str, result: str, *arguments: str) -> str:
    parameters = ", ".join(
        f".param .{PTX_TYPE.get(type_, type_)} a{index}" for index, type_ in enumerate(arguments)
    )
    return f".extern .func (.param .{PTX_TYPE.get(result, result)} r) {name} ({parameters});"


def _called(name: str, x: np.ndarray, second: str = "", guard: str = "") -> np.ndarray:
    """The results of function `name` of f32 or f64 over a warp; an unwritten result is 77."""
    external = EXTERNALS[name]
    letter, size = ("f", 4) if external.result == "f32" else ("d", 8)
    value = "0f429A0000" if letter == "f" else "0d4053400000000000"
    extra = (
        {"f32": ", %f3", "f64": ", %d3", "s32": ", %r3"}[external.arguments[1]] if second else ""
    )
    body = f"""
    mul.wide.u32 %q0, %lane, {size}; add.s64 %q1, %rd0, %q0; add.s64 %q2, %rd1, %q0; ld.global.{external.result} %{letter}1, [%q1];
    mov.{external.result} %{letter}2, {value}; {second}
    {guard} call (%{letter}2), {name}, (%{letter}1{extra});
    st.global.{external.result} [%q2], %{letter}2;"""
    declared = _declared(name, external.result, *external.arguments)
    return run(body, [x, np.zeros_like(x)], declared=declared).arrays[1]


@pytest.mark.parametrize(
    "name",
    [
        "__ev_expf",
        "__ev_tanf",
        "__ev_erff",
        "__ev_lgammaf",
        "__ev_cbrtf",
        "__ev_exp",
        "__ev_log1p",
        "__ev_sinh",
    ],
)
def test_functions_of_one_argument(name: str) -> None:
    function = name.removeprefix("__ev_")
    single = function.endswith("f") and function != "erf"
    x = X.astype(np.float32 if single else np.float64)
    want = [
        getattr(math, function.removesuffix("f") if single else function)(float(item)) for item in x
    ]
    np.testing.assert_allclose(
        _called(name, x), want, rtol=3e-7 if single else 4e-16, atol=1e-7 if single else 1e-15
    )


def test_functions_of_two_arguments() -> None:
    x = X.astype(np.float32)
    np.testing.assert_allclose(
        _called("__ev_powf", x, "mov.f32 %f3, 0f40200000;"), x.astype(float) ** 2.5, rtol=2e-7
    )
    np.testing.assert_array_equal(
        _called("__ev_fmod", X, "mov.f64 %d3, 0d3FE8000000000000;"), np.fmod(X, 0.75)
    )
    np.testing.assert_array_equal(
        _called("__ev_ldexpf", x, "sub.s32 %r3, %lane, 3;"), x * np.exp2(np.arange(32) - 3)
    )


def test_inactive_lanes_keep_their_result() -> None:
    x = X.astype(np.float32)
    got = _called("__ev_cbrtf", x, guard="setp.lt.u32 %p0, %lane, 5; @%p0")
    np.testing.assert_allclose(
        got, np.where(np.arange(32) < 5, np.cbrt(x), np.float32(77)), rtol=2e-7
    )


def test_a_missing_function_is_refused() -> None:
    with pytest.raises(Unsupported, match="there is no function malloc"):
        run(
            "mov.u64 %q0, 8; call (%q1), malloc, (%q0);",
            [],
            declared=_declared("malloc", "b64", "b64"),
        )


# ---------------------------------------------------------------- vprintf and __assertfail


def _text(name: str, content: str) -> str:
    data = ", ".join(str(byte) for byte in content.encode() + b"\0")
    return f".global .align 1 .b8 {name}[{len(content.encode()) + 1}] = {{{data}}};\n"


PRINT = _declared("vprintf", "b32", "b64", "b64") + "\n"
ARGUMENTS = """
    .local .align 8 .b8 frame[16]; mov.u64 %q0, frame; cvta.local.u64 %q1, %q0;
    mul.lo.u32 %r1, %t, 10; st.local.u32 [%q0], %t; st.local.u32 [%q0+4], %r1;
    mov.u64 %q2, format; cvta.global.u64 %q2, %q2; mov.u32 %r2, 77;"""


@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_each_active_lane_prints_its_arguments(checks: Checks | None) -> None:
    body = f"""{ARGUMENTS}
    and.b32 %r0, %t, 7; setp.eq.u32 %p0, %r0, 3; @!%p0 bra END;
    call (%r2), vprintf, (%q2, %q1);
    END: st.global.u32 [%own0], %r2;"""
    declared = PRINT + _text("format", "%d of %u\n")
    ran = run(body, [np.zeros(45, np.uint32)], threads=45, declared=declared, checks=checks)
    assert ran.report.printed.splitlines() == [
        f"{thread} of {10 * thread}" for thread in range(3, 45, 8)
    ]
    assert ran.arrays[0].tolist() == [2 if thread % 8 == 3 else 77 for thread in range(45)]
    assert ran.kinds() == []


def test_a_format_without_arguments_gives_zero() -> None:
    body = (
        f"{ARGUMENTS} setp.eq.u32 %p0, %t, 4; @%p0 call (%r2), vprintf, (%q2, 0); st.global.u32"
        " [%own0], %r2;"
    )
    ran = run(body, [np.zeros(32, np.uint32)], declared=PRINT + _text("format", "100 %%\n"))
    assert ran.report.printed == "100 %\n"
    assert ran.arrays[0].tolist() == [0 if lane == 4 else 77 for lane in range(32)]


def test_formats_outside_of_buffers_are_not_read() -> None:
    body = (
        f"{ARGUMENTS} setp.eq.u32 %p0, %t, 4; mov.u64 %q2, 64; @%p0 call (%r2), vprintf, (%q2,"
        " %q1);"
    )
    assert run(body, [], declared=PRINT + _text("format", "")).report.printed == ""


FAIL = (
    ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param"
    " .b64 e);\n" + _text("message", "n % 3 == %d")
)


def _asserting(condition: str) -> str:
    return f"""
    {condition} st.global.u32 [%own0], 1; @!%p0 bra END;
    mov.u64 %q1, message; cvta.global.u64 %q1, %q1; mov.u64 %q2, 0; mov.u64 %q3, 1; mov.u32 %r1, 12;
    call __assertfail, (%q1, %q2, %r1, %q2, %q3); trap;
    END: st.global.u32 [%own0], 2;"""


def test_a_failed_assertion_ends_the_launch_and_is_named() -> None:
    with pytest.raises(Trapped, match=r"assertion `n % 3 == %d` failed"):
        run(_asserting("setp.eq.u32 %p0, %t, 5;"), [np.zeros(32, np.uint32)], declared=FAIL)


def test_an_assertion_that_holds_does_nothing() -> None:
    ran = run(_asserting("setp.eq.u32 %p0, %t, 50;"), [np.zeros(32, np.uint32)], declared=FAIL)
    assert ran.report.printed == ""
    assert ran.arrays[0].tolist() == [2] * 32


def test_a_guarded_assertion_fails_if_a_lane_executes_it() -> None:
    body = (
        "mov.u64 %q1, message; setp.eq.u32 %p0, %t, {lane}; @%p0 call __assertfail, (%q1, %q1, %r1,"
        " %q1, %q1); st.global.u32 [%own0], 2;"
    )
    ran = run(body.format(lane=32), [np.zeros(32, np.uint32)], declared=FAIL)
    assert ran.arrays[0].tolist() == [2] * 32
    with pytest.raises(Trapped, match="assertion"):
        run(body.format(lane=31), [np.zeros(32, np.uint32)], declared=FAIL)


# ---------------------------------------------------------------- floods

FLOOD = f"""{ARGUMENTS} mov.u32 %r3, 0;
    AGAIN: call (%r2), vprintf, (%q2, %q1); add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, ROUNDS; @%p0 bra AGAIN;
    st.global.u32 [%own0], %r2;"""


def test_a_flood_of_output_is_cut_without_calling_python_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, print_ = [], DevicePrinter.print
    monkeypatch.setattr(
        DevicePrinter, "print", lambda *arguments: entered.append(1) or print_(*arguments)
    )
    body = FLOOD.replace("ROUNDS", "100000")
    ran = run(
        body, [np.zeros(64, np.int32)], threads=64, declared=PRINT + _text("format", "%d of %u\n")
    )
    assert (
        ran.report.printed.startswith("0 of 0\n1 of 10\n")
        and len(ran.report.printed) <= LIMIT_CHARACTERS
    )
    assert ran.arrays[0].tolist() == [-1] * 64
    assert len(entered) <= LIMIT_CHARACTERS // RECORD_CHARACTERS // 32 + 1


def test_an_endless_flood_takes_fuel() -> None:
    with pytest.raises(OutOfFuel, match="out of fuel in a loop"):
        run(
            FLOOD.replace("ROUNDS", "1").replace("@%p0 bra", "bra"),
            [np.zeros(32, np.int32)],
            declared=PRINT + _text("format", "on and on\n"),
            fuel=100_000,
        )
