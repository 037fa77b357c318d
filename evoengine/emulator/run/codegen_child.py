"""Compiles LLVM IR to object files, in a process of its own: `python -m
evoengine.emulator.run.codegen_child`.

LLVM compiles one module at a time in a process, and aborts the process on an internal error. So
modules are compiled in child processes (run/codegen_pool.py), as many at once as there are cores. A
request is a line of JSON and the IR, the response a line of JSON and the object file.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from functools import cache

import llvmlite.binding as llvm

# functions that the IR calls but does not define
DECLARED_FUNCTIONS = re.compile(r"^declare [^@\n]*@(?!llvm\.)([\w.$]+)\(", re.MULTILINE)


class InvalidIr(Exception):  # noqa: N818 - as its siblings of errors.py
    """The text is not valid LLVM IR."""


@cache
def initialise_llvm() -> None:
    """Initialises LLVM for this machine, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def target_machine(cpu: str, features: str, level: int) -> llvm.TargetMachine:
    """A code generator for a CPU; `level` is its optimisation level, 0 to 3."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True
    )


def parse_module(ir: str) -> llvm.ModuleRef:
    """The parsed and verified module; raises InvalidIr."""
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise InvalidIr(str(error).strip().splitlines()[0]) from error
    return module


def emit_object(ir: str, cpu: str, features: str, level: int) -> bytes:
    """The object file of a module; raises InvalidIr."""
    initialise_llvm()
    module, target = parse_module(ir), target_machine(cpu, features, level)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(target.target_data)
    _simplify(module, target)
    object_file: bytes = target.emit_object(module)
    return object_file


def _simplify(module: llvm.ModuleRef, target: llvm.TargetMachine) -> None:
    """Promotes memory to registers and removes dead code.

    clang has optimised the kernel already: the whole of -O2 takes five times as long as this and
    its code runs no faster.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.PipelineTuningOptions()))


def main() -> None:
    """Serves requests until its input is closed, at the latest when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        ir = sys.stdin.buffer.read(request["bytes"]).decode("utf-8")
        object_file, problem = b"", ""
        try:
            object_file = emit_object(ir, request["cpu"], request["features"], request["level"])
        except InvalidIr as error:
            problem = str(error)
        sys.stdout.buffer.write(
            json.dumps({"bytes": len(object_file), "problem": problem}).encode()
            + b"\n"
            + object_file
        )
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
