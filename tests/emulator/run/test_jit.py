"""IR to machine code: IR that LLVM refuses, or crashes on, gives errors."""

from __future__ import annotations

import ctypes
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.run.codegen_pool import CodegenPool
from evoengine.emulator.run.jit import Jit


def test_a_function_runs() -> None:
    code = Jit().compile("define i32 @f(i32 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}", "f")
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address)(41) == 42


def test_a_function_of_the_runtime_is_called() -> None:
    jit = Jit()
    assert "ev_run" in jit.native.symbols
    text = "declare i32 @ev_run(ptr, ptr, ptr)\ndefine ptr @f() {\n ret ptr @ev_run\n}"
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(
        jit.compile(text, "f").address
    )() == jit.native.address("ev_run")


def test_the_same_ir_becomes_code_once() -> None:
    jit, text = Jit(), "define i32 @f() {\n ret i32 7\n}"
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: jit.compile(text, "f"), range(8)))
    assert len(found) == 1
    assert jit.compile(text, "f", quick=True) not in found


def test_a_codegen_child_gets_no_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the emulator is used alone, in a process that holds one."""
    for name in ("OPENAI_API_KEY", "SECRET_TOKEN", "NVIDIA_API_KEY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "canary")
    crowd, how = CodegenPool(1), Jit()
    try:
        crowd.compile("define i32 @f() {\n ret i32 7\n}", how.cpu, how.features, 0)
        seen = Path(f"/proc/{crowd._idle[0]._process.pid}/environ").read_bytes()
    finally:
        crowd.close()
    assert b"PATH=" in seen and b"canary" not in seen


def test_a_codegen_child_that_crashes_is_unsupported_and_replaced() -> None:
    """As when LLVM meets a fault of its own: the process lives on."""
    crowd = CodegenPool(1)
    text = "define i32 @f() {\n ret i32 7\n}"
    how = Jit()
    assert crowd.compile(text, how.cpu, how.features, 1)
    (child,) = crowd._idle
    child._process.send_signal(signal.SIGSEGV)
    with pytest.raises(
        Unsupported, match="code generation by LLVM: the process ended with SIGSEGV"
    ):
        crowd.compile(text, how.cpu, how.features, 1)
    assert crowd.compile(text, how.cpu, how.features, 1)
    crowd.close()


@pytest.mark.parametrize(
    "text",
    [
        "define i32 @f() {\n ret i64 1\n}",
        "define i32 @f(i1 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}",
        "define i32 @f() {\n br label %nowhere\n}",
        "define i32 @f() {\nentry:\n ret i32 1\nnext:\n %y = add i32 %z, 1\n %z = add i32 %y, 1\n}",
        "no ir",
    ],
)
def test_ir_that_llvm_refuses_is_unsupported(text: str) -> None:
    with pytest.raises(Unsupported, match="operands of types that do not match"):
        Jit().compile(text, "f")


def test_a_missing_function_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="ev_missing: the C runtime has no such function"):
        Jit().compile(
            "declare void @ev_missing()\ndefine void @f() {\n call void @ev_missing()\n ret"
            " void\n}",
            "f",
        )
