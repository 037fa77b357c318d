"""LLVM IR to an object file, and the process that does it: `python -m
evoengine.emulator.run.codegen_child`.

LLVM takes one module at a time in a process, and ends the process where it meets a fault of its
own. So modules are made into code in children (run/makers.py), as many at once as there are cores.
A request is a line of JSON and the IR, the answer a line of JSON and the object file.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from functools import cache

import llvmlite.binding as llvm

# that IR calls and does not contain
FUNCTIONS = re.compile(r"^declare [^@\n]*@(?!llvm\.)([\w.$]+)\(", re.MULTILINE)


class CodegenRefused(Exception):  # noqa: N818 - as its siblings of errors.py
    """IR that is none."""


@cache
def initialise() -> None:
    """Readies LLVM for this machine, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def machine(cpu: str, features: str, level: int) -> llvm.TargetMachine:
    """A code generator for a CPU; `level` is how much it tries, 0 to 3."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True
    )


def parsed(ir: str) -> llvm.ModuleRef:
    """LLVM's module; raises Refused."""
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise CodegenRefused(str(error).strip().splitlines()[0]) from error
    return module


def object_of(ir: str, cpu: str, features: str, level: int) -> bytes:
    """The object file of a module; raises Refused."""
    initialise()
    module, target = parsed(ir), machine(cpu, features, level)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(target.target_data)
    _simplify(module, target)
    made: bytes = target.emit_object(module)
    return made


def _simplify(module: llvm.ModuleRef, target: llvm.TargetMachine) -> None:
    """Registers out of memory, and no code that does nothing.

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
    """Answers until its input ends, which it does with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        ir = sys.stdin.buffer.read(request["bytes"]).decode("utf-8")
        made, problem = b"", ""
        try:
            made = object_of(ir, request["cpu"], request["features"], request["level"])
        except CodegenRefused as error:
            problem = str(error)
        sys.stdout.buffer.write(
            json.dumps({"bytes": len(made), "problem": problem}).encode() + b"\n" + made
        )
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
